// The camera and its frames: each is sent in one POST with the current settings, and its answer is shown.
(() => {
  "use strict";
  const MAX_HEIGHT = 360; // input height of the pretrained networks; more pixels would be sent for nothing
  const QUALITY = 0.85;
  const RETRY_MS = 2000;
  const SLOW_START_MS = 700; // after this time the page says what it waits for: a network that opens, or a slow video
  const CAMERA = { video: { width: { ideal: 640 }, height: { ideal: 480 }, frameRate: { ideal: 30 } }, audio: false };

  const live = (window.steadyseg ??= {});
  const now = () => performance.now();
  let kind = null; // "camera", "server" or null: nothing runs
  let opened = false; // true once the controls have sent their first values
  let video = null;
  let media = null;
  let presented = 0;
  let sequence = 0;
  let lastShown = 0;
  let underway = 0;
  let retryAt = 0;
  let travelMs = 1e3;
  let stepMs = 1;
  const canvas = document.createElement("canvas");

  live.key = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
  live.settings = {};
  live.watch = null;
  live.counts = { camera: 0, shown: 0 };
  live.ages = []; // of every shown frame, for studies/performance/page.py

  const address = (path) => new URL(`live/${live.key}${path}`, document.baseURI).href;
  const stage = () => [...document.querySelectorAll(".stage")].find((one) => one.offsetParent !== null);

  function say(text, trouble = false) {
    for (const line of document.querySelectorAll(".stage .message")) {
      if (line.textContent !== text) line.textContent = text;
      line.classList.toggle("trouble", trouble);
    }
  }

  function showRunning() {
    for (const button of document.querySelectorAll(".stage [data-do=stop]")) button.disabled = kind === null;
    document.body.classList.toggle("stopped", kind === null); // a frozen picture must not look live
  }

  // A second frame is sent while one is computed, but only if sending takes less time than computing.
  const maxUnderway = () => (travelMs < stepMs ? 2 : 1);

  const ready = () => kind !== null && stage() && underway < maxUnderway() && now() >= retryAt;

  function settingsNow() {
    const settings = { ...live.settings, watch: live.watch };
    if (stage()?.dataset.stage !== "compare") {
      settings.against = null;
      settings.mark_changes = false;
    }
    return settings;
  }

  async function cameraPicture() {
    const scale = Math.min(1, MAX_HEIGHT / video.videoHeight);
    canvas.width = Math.round(video.videoWidth * scale);
    canvas.height = Math.round(video.videoHeight * scale);
    canvas.getContext("2d", { alpha: false }).drawImage(video, 0, 0, canvas.width, canvas.height);
    return new Promise((resolve) => canvas.toBlob(resolve, "image/jpeg", QUALITY));
  }

  function packed(settings, takenAt, picture) {
    const text = new TextEncoder().encode(JSON.stringify(settings));
    const head = new DataView(new ArrayBuffer(12));
    head.setUint32(0, text.length, true);
    head.setFloat64(4, takenAt, true);
    return new Blob([head, text, ...(picture ? [picture] : [])]);
  }

  async function send(takenAt) {
    const number = ++sequence;
    const startedKind = kind;
    underway += 1;
    const tell = (text, trouble) => kind === startedKind && say(text, trouble); // no messages after Stop
    const slow = live.counts.shown ? "waiting for the answer ..." : "opening the network (a new one is converted once, for some seconds) ...";
    const waiting = setTimeout(tell, SLOW_START_MS, slow);
    try {
      const picture = startedKind === "camera" ? await cameraPicture() : null;
      if (startedKind === "camera" && !picture) return; // a request without a picture asks for the server's video
      const sentAt = now();
      const body = packed(settingsNow(), takenAt, picture);
      const answer = await fetch(address(""), { method: "POST", body, cache: "no-store" });
      if (answer.status === 204) return; // a newer frame took its place
      if (!answer.ok) {
        retryAt = now() + RETRY_MS;
        const { error } = await answer.json().catch(() => ({}));
        return tell(error ?? `the server answers ${answer.status}; this page tries again`, true);
      }
      const data = await answer.arrayBuffer();
      const roundMs = now() - sentAt;
      if (kind !== startedKind || number < lastShown) return;
      lastShown = number;
      const facts = await show(data);
      travelMs += 0.2 * (Math.max(0, roundMs - facts.server_ms) - travelMs);
      if (live.counts.shown < 3) travelMs = Math.max(0, roundMs - facts.server_ms);
      if (!facts.opened) stepMs += 0.2 * (facts.step_ms - stepMs);
      // The age of a frame of the server's video: its age at the server, and half of the time for the way there and back.
      const age = startedKind === "camera" ? now() - takenAt : facts.age_ms + travelMs / 2 + (now() - sentAt - roundMs);
      live.counts.shown += 1;
      if (startedKind === "server") live.counts.camera = facts.given;
      if (!facts.opened) live.ages.push(age);
      if (live.ages.length > 100000) live.ages.splice(0, 50000);
      tell(facts.note ?? "", false);
      showRunning(); // Gradio makes the other tab's button when that tab is first opened
      live.told(facts, facts.opened ? null : age); // its age is the time to compile the network
    } catch (error) {
      if (kind === null) return;
      if (!(error instanceof TypeError)) throw error;
      retryAt = now() + RETRY_MS;
      tell("The server does not answer: it was stopped, or the network is gone. This page tries again.", true);
    } finally {
      clearTimeout(waiting);
      underway -= 1;
      if (kind === "server") pump();
    }
  }

  async function show(data) {
    const view = new DataView(data);
    const [factsLength, leftLength] = [view.getUint32(0, true), view.getUint32(4, true)];
    const facts = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 8, factsLength)));
    const pictures = await Promise.all(
      [new Uint8Array(data, 8 + factsLength, leftLength), new Uint8Array(data, 8 + factsLength + leftLength)].map((bytes) =>
        createImageBitmap(new Blob([bytes], { type: "image/jpeg" })),
      ),
    );
    const shown = stage();
    ["left", "right"].forEach((side, index) => {
      const target = shown?.querySelector(`canvas[data-picture=${side}]`);
      if (!target) return pictures[index].close();
      if (target.width !== pictures[index].width || target.height !== pictures[index].height) {
        [target.width, target.height] = [pictures[index].width, pictures[index].height];
        shown.style.setProperty("--aspect", target.width / target.height);
      }
      target.getContext("2d", { alpha: false }).drawImage(pictures[index], 0, 0);
      pictures[index].close();
    });
    shown?.classList.add("playing");
    return facts;
  }

  function cameraFrame(time, meta) {
    if (kind !== "camera") return;
    const count = meta?.presentedFrames ?? presented + 1;
    if (stage() && presented) live.counts.camera += count - presented;
    presented = count;
    if (ready()) send(meta?.captureTime ?? now());
    nextCameraFrame();
  }

  function nextCameraFrame() {
    if (video.requestVideoFrameCallback) video.requestVideoFrameCallback(cameraFrame);
    else setTimeout(() => cameraFrame(now()), 33);
  }

  function pump() {
    if (kind !== "server") return;
    if (ready()) send(now());
    else if (underway === 0) setTimeout(pump, 200);
  }

  live.start = async (wanted) => {
    live.stop();
    say(wanted === "camera" ? "asking for the camera ..." : "");
    if (wanted === "camera") {
      try {
        if (!navigator.mediaDevices) throw new Error("this browser gives the camera only to 127.0.0.1 or over HTTPS");
        media = await navigator.mediaDevices.getUserMedia(CAMERA);
      } catch (error) {
        const known = { NotAllowedError: "the camera was not allowed", NotFoundError: "no camera was found" };
        return say(`${known[error.name] ?? error.message}; a video can be segmented in the tab File`, true);
      }
      video = Object.assign(document.createElement("video"), { muted: true, playsInline: true, srcObject: media });
      await video.play();
      media.getVideoTracks()[0].addEventListener("ended", () => live.stop("the camera was switched off"));
      presented = 0;
    }
    kind = wanted;
    live.counts = { camera: 0, shown: 0 };
    live.ages = [];
    live.begun();
    showRunning();
    if (kind === "camera") nextCameraFrame();
    else pump();
  };

  live.stop = (reason = "") => {
    media?.getTracks().forEach((track) => track.stop());
    if (kind !== null) navigator.sendBeacon(address("/end"));
    kind = media = video = null;
    showRunning();
    say(reason);
  };

  live.set = (...values) => {
    const names = ["model", "mode", "samples", "tau", "motion", "calibrated", "second", "opacity", "min_confidence",
      "against", "mark_changes"];
    names.forEach((name, index) => (live.settings[name] = values[index]));
    live.settings.min_confidence /= 100;
    live.settings.opacity /= 100;
    live.settingsChanged?.();
    if (!opened) live.start("server"); // the page plays its own video until the visitor asks for something else
    opened = true;
    return values;
  };

  document.addEventListener("click", (event) => {
    const action = event.target.closest?.(".stage [data-do]")?.dataset.do;
    if (action === "stop") live.stop("stopped: the last picture stays");
    else if (action) live.start(action);
  });
  addEventListener("pagehide", () => live.stop());
})();
