// Registers the service worker, which adds the headers that threads need.
const TRIED = "steadyseg-isolation-tried";
const PATIENCE_MS = 3000; // without a service worker the page works too, with one thread

// Returns true if the page is about to be reloaded in isolation. From then on fetches pass the service worker.
export async function isolate() {
  const workers = navigator.serviceWorker;
  if (!workers) return false;
  try {
    await workers.register("service-worker.js");
    await Promise.race([controlled(workers), new Promise((resolve) => setTimeout(resolve, PATIENCE_MS))]);
    if (crossOriginIsolated || !workers.controller) return false;
    if (sessionStorage.getItem(TRIED)) return false; // only once: a browser or frame that cannot be isolated would reload forever
    sessionStorage.setItem(TRIED, "yes");
  } catch {
    return false; // private windows have no service worker; the page shows the consequence
  }
  location.reload();
  return true;
}

async function controlled(workers) {
  await workers.ready;
  if (!workers.controller) await new Promise((resolve) => workers.addEventListener("controllerchange", resolve, { once: true }));
}
