// Answers all requests for this folder with the headers that allow the page threads (COOP, COEP) and forbid it requests to
// other hosts (CSP). It keeps no files: the browser's own cache does.
const HEADERS = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Content-Security-Policy":
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self' blob:; connect-src 'self'; style-src 'self'; " +
    "img-src 'self' data: blob:; media-src 'self' blob:; base-uri 'none'; form-action 'none'",
};

addEventListener("install", () => skipWaiting());
addEventListener("activate", (event) => event.waitUntil(clients.claim()));
addEventListener("fetch", (event) => {
  const { method, url } = event.request;
  if (method === "GET" && url.startsWith(registration.scope)) event.respondWith(headed(event.request));
});

async function headed(request) {
  const response = await fetch(request.url, { cache: request.cache === "reload" ? "reload" : "no-cache" });
  const headers = new Headers(response.headers);
  for (const [name, value] of Object.entries(HEADERS)) headers.set(name, value);
  return new Response(response.body, { status: response.status, statusText: response.statusText, headers });
}
