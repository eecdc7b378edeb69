// Frames of a camera, a file, or the sample. `next` returns the newest frame; skipped frames are counted.
import { Trouble } from "./trouble.js";

const CAMERA = { video: { width: { ideal: 640 }, height: { ideal: 480 }, frameRate: { ideal: 30 } }, audio: false };
const START_MS = 15000; // longest wait for the first picture

export class Source {
  #video = Object.assign(document.createElement("video"), { muted: true, playsInline: true });
  #newest = null; // {count, at, time} of the frame that the element shows
  #taken = { count: 0, time: -1 };
  #reset = true;
  #wake = () => {};
  #ended = null;
  #address = null;
  #media = null;
  presented = 0;

  static async camera() {
    if (!navigator.mediaDevices) throw new Trouble("This browser gives the camera only to https:// or localhost.");
    const source = new Source();
    try {
      source.#media = await navigator.mediaDevices.getUserMedia(CAMERA);
    } catch (error) {
      const known = {
        NotAllowedError: "The camera was not allowed: allow it in the browser's address bar, or take a video file.",
        NotFoundError: "No camera was found: connect one, or take a video file.",
        NotReadableError: "The camera is in use by another program: close that one, or take a video file.",
      };
      throw new Trouble(known[error.name] ?? `The camera cannot be opened (${error.message}).`);
    }
    source.#media.getVideoTracks()[0].addEventListener("ended", () => source.#end("The camera was switched off."));
    source.#video.srcObject = source.#media;
    return source.#begin("The camera");
  }

  // content: a Blob or File; repeats: starts over at the end.
  static async video(content, name, repeats = false) {
    const source = new Source();
    source.#address = URL.createObjectURL(content);
    Object.assign(source.#video, { src: source.#address, loop: repeats });
    return source.#begin(name);
  }

  async #begin(name) {
    const video = this.#video;
    video.addEventListener("seeking", () => (this.#reset = true));
    video.addEventListener("ended", () => this.#end("The video has ended."));
    video.addEventListener("error", () => this.#end(`${name} is damaged: it cannot be decoded any further.`));
    try {
      await new Promise((resolve, reject) => {
        const late = setTimeout(() => reject(new Trouble(`${name} shows no picture after ${START_MS / 1000} s.`)), START_MS);
        const fail = (why) => (clearTimeout(late), reject(new Trouble(why)));
        video.addEventListener("error", () => fail(`${name} cannot be played by this browser: its format or codec is not known here, or it is damaged. MP4 with H.264 and WebM are.`), { once: true });
        video.addEventListener("loadeddata", () => {
          if (!video.videoWidth) return fail(`${name} holds no picture.`);
          clearTimeout(late);
          resolve();
        }, { once: true });
      });
      video.requestVideoFrameCallback((...seen) => this.#seen(...seen));
      await video.play();
    } catch (error) {
      this.close();
      throw error;
    }
    return this;
  }

  #seen(now, meta) {
    this.#newest = { count: meta.presentedFrames, at: meta.captureTime ?? now, time: meta.mediaTime };
    this.presented = meta.presentedFrames;
    this.#wake();
    if (!this.#ended) this.#video.requestVideoFrameCallback((...seen) => this.#seen(...seen));
  }

  #end(why) {
    this.#ended ??= why;
    this.#wake();
  }

  // Returns the newest frame that was not returned yet as {bitmap, at, gap, reset}, or null after the end (`why`: its reason).
  // at: performance.now() of the capture; gap: source frames since the last returned one; reset: the stream restarts.
  async next() {
    while (!this.#ended && (!this.#newest || this.#newest.count === this.#taken.count)) {
      await new Promise((resolve) => (this.#wake = resolve));
    }
    if (this.#ended) return null;
    const { count, at, time } = this.#newest;
    const bitmap = await createImageBitmap(this.#video);
    const reset = this.#reset || time < this.#taken.time; // the file was rewound or started over
    const gap = Math.max(1, count - this.#taken.count);
    this.#taken = { count, time };
    this.#reset = false;
    return { bitmap, at, gap, reset };
  }

  get why() {
    return this.#ended;
  }

  get video() {
    return this.#video;
  }

  close() {
    this.#end("");
    this.#media?.getTracks().forEach((track) => track.stop());
    this.#video.pause();
    this.#video.srcObject = null;
    this.#video.removeAttribute("src");
    this.#video.load();
    if (this.#address) URL.revokeObjectURL(this.#address);
    this.#address = this.#media = null;
  }
}
