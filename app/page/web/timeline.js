// The strip of time in the tab File: a click, a drag or an arrow key sets the video, and the video moves the strip's mark.
(() => {
  "use strict";
  const STEP_S = 1;
  const player = () => document.querySelector("#video video");
  const strip = () => document.querySelector(".course");
  let points = [];
  let of = null; // the element that `points` were read from

  function clock(seconds) {
    const rest = (seconds % 60).toFixed(1).padStart(4, "0");
    return `${Math.floor(seconds / 60)}:${rest}`;
  }

  const percent = (share) => `${Math.round(100 * share)} %`;

  function mark(seconds) {
    const course = strip();
    if (!course) return;
    if (of !== course) [of, points] = [course, JSON.parse(course.dataset.points)];
    const end = Number(course.getAttribute("aria-valuemax"));
    course.querySelector(".head").style.left = `${100 * Math.min(1, seconds / end)}%`;
    const [, familiarity, confidence, mark] = points.findLast(([time]) => time <= seconds + 0.001) ?? points[0];
    const known = familiarity === null ? [] : [`familiarity ${percent(familiarity)}`];
    known.push(mark === "" ? `about ${percent(confidence)} right` : `mean confidence ${percent(confidence)} (${mark})`);
    const words = `${clock(seconds)} of ${clock(end)}: ${known.join(", ")}`;
    course.setAttribute("aria-valuenow", seconds.toFixed(2));
    course.setAttribute("aria-valuetext", words);
    course.parentElement.querySelector(".course-key output").textContent = words;
  }

  function go(seconds) {
    const video = player();
    const end = Number(strip().getAttribute("aria-valuemax"));
    const target = Math.min(end, Math.max(0, seconds));
    if (video) video.currentTime = target;
    mark(target);
  }

  function toPointer(event) {
    const place = strip().getBoundingClientRect();
    go(((event.clientX - place.left) / place.width) * Number(strip().getAttribute("aria-valuemax")));
  }

  document.addEventListener("pointerdown", (event) => {
    const course = event.target.closest?.(".course");
    if (!course) return;
    course.setPointerCapture(event.pointerId);
    player()?.pause();
    toPointer(event);
  });
  document.addEventListener("pointermove", (event) => {
    if (event.buttons && event.target.closest?.(".course")) toPointer(event);
  });
  document.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -STEP_S, ArrowRight: STEP_S, Home: -Infinity, End: Infinity }[event.key];
    if (step === undefined || !event.target.closest?.(".course")) return;
    event.preventDefault();
    go((player()?.currentTime ?? 0) + step);
  });
  // Events of media do not bubble, but they can be captured.
  for (const kind of ["timeupdate", "seeked", "loadeddata"])
    document.addEventListener(kind, (event) => event.target === player() && mark(event.target.currentTime), true);
})();
