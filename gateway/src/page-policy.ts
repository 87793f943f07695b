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
