/** The page that renders /openapi.json; its scripts and styles come from docs.ts. */
export const referencePage = documentOf(
  "Holdfast API",
  [
    '<link rel="stylesheet" href="/docs/assets/swagger-ui.css">',
    '<script defer src="/docs/assets/swagger-ui-bundle.js"></script>',
    '<script defer src="/docs/assets/reference.js"></script>',
  ],
  '<div id="reference"><noscript>The reference needs scripts; <a href="/openapi.json">openapi.json</a> has the same content.</noscript></div>',
);

/** A page with a heading; `body` is HTML. */
export function page(title: string, body: string): string {
  return documentOf(title, [], `<main><h1>${escape(title)}</h1>${body}</main>`);
}

function documentOf(title: string, head: readonly string[], body: string): string {
  return [
    `<!doctype html><html lang="en"><meta charset="utf-8"><title>${escape(title)}</title>`,
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    // An empty icon, because browsers would request /favicon.ico.
    '<link rel="icon" href="data:,"><link rel="stylesheet" href="/docs/assets/page.css">',
    ...head,
    '<nav><a href="/docs">Reference</a><a href="/docs/methods">Methods</a><a href="/docs/errors">Errors</a>',
    '<a href="/openapi.json">openapi.json</a></nav>',
    body,
    "</html>",
  ].join("");
}

/** Escapes text for HTML content and quoted attributes. */
export function escape(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}

/**
 * The Content-Security-Policy of pages. It permits no content from other sites, no inline scripts or styles and no
 * frame around a page. Scripts send requests only to this API; icons are data URLs in the style sheets.
 */
export const pagePolicy: string = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");
