/**
 * The Content-Security-Policy of pages: nothing from other sites, nothing inline, and no frame around them. Requests of
 * their scripts go to this API; icons are inside the style sheets.
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
