// Answers all requests for this folder: from the cache without a network, and with the headers that allow the page threads
// (COOP, COEP) and forbid it requests to other hosts (CSP).
const CACHE = "steadyseg-VERSION_OF_THIS_FOLDER";
const FILES = { "FILES_OF_THIS_FOLDER": "" }; // the page itself: name -> SHA-256; other files are cached when they are fetched
const NAMED_BY_HASH = /\/(models|sample|runtime-[\d.]+)\//; // changed content has another name, so a cached file is the right one
const HEADERS = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Content-Security-Policy":
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self' blob:; connect-src 'self'; style-src 'self'; " +
    "img-src 'self' data: blob:; media-src 'self' blob:; base-uri 'none'; form-action 'none'",
};

addEventListener("install", (event) => event.waitUntil(keepPage()));
addEventListener("activate", (event) => event.waitUntil(begin()));

async function keepPage() {
  const cache = await caches.open(CACHE);
  await Promise.all(Object.entries(FILES).map(async ([file, hash]) => {
    const response = await fetch(file, { cache: "no-cache" });
    const digest = await crypto.subtle.digest("SHA-256", await response.clone().arrayBuffer());
    const found = Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
    if (found !== hash) throw new Error(`${file} is not the file that this folder was made with`); // nothing is kept then
    await cache.put(file, response);
  }));
  await skipWaiting();
}

async function begin() {
  const own = (name) => name.startsWith("steadyseg-") && name !== CACHE;
  await Promise.all((await caches.keys()).filter(own).map((name) => caches.delete(name)));
  await clients.claim();
}

addEventListener("fetch", (event) => {
  const { method, url } = event.request;
  if (method === "GET" && url.startsWith(registration.scope)) event.respondWith(answer(event.request));
});

async function answer(request) {
  const cache = await caches.open(CACHE);
  const anew = request.cache === "reload"; // the cached content was wrong (whole_file.js)
  const kept = !anew && NAMED_BY_HASH.test(new URL(request.url).pathname) ? await cache.match(request.url) : null;
  if (kept) return headed(kept);
  try {
    const fresh = await fetch(request.url, { cache: anew ? "reload" : "no-cache" });
    if (fresh.status === 200) await cache.put(request.url, fresh.clone());
    return headed(fresh);
  } catch (error) {
    const known = (await cache.match(request.url)) ?? (await cache.match(request.url, { ignoreSearch: true }));
    if (known) return headed(known);
    throw error;
  }
}

function headed(response) {
  const headers = new Headers(response.headers);
  for (const [name, value] of Object.entries(HEADERS)) headers.set(name, value);
  return new Response(response.body, { status: response.status, statusText: response.statusText, headers });
}
