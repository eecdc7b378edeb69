// The service worker: it keeps the folder for visits without a network, and gives it the headers that threads need.
const TRIED = "steadyseg-isolation-tried";
const PATIENCE_MS = 3000; // without a service worker the page works too, with one thread

// True where the page is about to be loaded anew, isolated this time. After it, what is fetched passes the service worker.
export async function isolate() {
  const workers = navigator.serviceWorker;
  if (!workers) return false;
  try {
    await workers.register("service-worker.js");
    await Promise.race([controlled(workers), new Promise((resolve) => setTimeout(resolve, PATIENCE_MS))]);
    if (crossOriginIsolated || !workers.controller) return false;
    if (sessionStorage.getItem(TRIED)) return false; // once: a browser or frame that cannot be isolated would never stop
    sessionStorage.setItem(TRIED, "yes");
  } catch {
    return false; // private windows have none; the page says what that costs
  }
  location.reload();
  return true;
}

async function controlled(workers) {
  await workers.ready;
  if (!workers.controller) await new Promise((resolve) => workers.addEventListener("controllerchange", resolve, { once: true }));
}
