import type { App } from "../app.ts";
import type { OutgoingResponse } from "../http/messages.ts";
import { type Html, html } from "../http/html.ts";

interface PageOptions {
  readonly status?: number;
  readonly title: string;
  readonly body: Html;
  /** Final target of a form after redirects, to which browsers apply form-action too. */
  readonly formTarget?: string;
  readonly cookies?: readonly string[];
}

/** A complete page: without scripts, inline styles and caching, and not usable in a frame. */
export function page(
  { config }: App,
  { status = 200, title, body, formTarget, cookies = [] }: PageOptions,
): OutgoingResponse {
  const { displayName = "", logoUrl = "" } = config.theme ?? {};
  const logoOrigin = URL.parse(logoUrl)?.origin;
  const target = formTarget === undefined ? undefined : formActionOf(formTarget);
  const policy = [
    "default-src 'none'",
    "style-src 'self'",
    `img-src ${logoOrigin ?? "'none'"}`,
    `form-action 'self'${target === undefined ? "" : ` ${target}`}`,
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ];
  const document = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} - ${displayName}</title>
<link rel="stylesheet" href="/style.css">
</head>
<body>
<main>
<header>${logoUrl !== "" && html`<img src="${logoUrl}" alt="" height="40">`}<p class="brand">${displayName}</p></header>
<h1>${title}</h1>
${body}
</main>
</body>
</html>
`;
  return {
    status,
    headers: {
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-store",
      "content-security-policy": policy.join("; "),
      "referrer-policy": "no-referrer",
      "x-content-type-options": "nosniff",
      "x-frame-options": "DENY",
      ...(cookies.length > 0 && { "set-cookie": cookies }),
    },
    body: document.text,
  };
}

/**
 * The source expression of a form's final target (Content Security Policy Level 3, section 2.3.1): its origin. It is
 * the scheme if the URI has no origin, such as a URI of a native app, or an IPv6 address, which an expression cannot
 * have.
 */
function formActionOf(uri: string): string | undefined {
  const url = URL.parse(uri);
  if (url === null) return undefined;
  return url.origin === "null" || url.hostname.startsWith("[") ? url.protocol : url.origin;
}

/** A page that explains a failure. */
export function problemPage(app: App, status: number, text: string): OutgoingResponse {
  return page(app, { status, title: "The request failed", body: html`<p>${text}</p>` });
}

/** The text color on a background: black or white, with a contrast of at least 4.58 to 1 (WCAG 2.2, 1.4.3). */
export function textColorOn(brand: string): "#000000" | "#ffffff" {
  const part = (at: number) => {
    const value = Number.parseInt(brand.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  const luminance = 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5);
  return luminance > 0.179 ? "#000000" : "#ffffff";
}

/** The style sheet. The owner's color is a background for readable text, never the text itself. */
export function styleSheet({ config }: App): OutgoingResponse {
  const brand = /^#[0-9a-f]{6}$/i.exec(config.theme?.brandColor ?? "")?.[0] ?? "#1f5fbf";
  return {
    status: 200,
    headers: {
      "content-type": "text/css; charset=utf-8",
      "cache-control": "public, max-age=60",
      "x-content-type-options": "nosniff",
    },
    body: `:root { --brand: ${brand}; --on-brand: ${textColorOn(brand)}; --ink: #1a1a1a; --ground: #ffffff; --line: #6b6b6b; --bad: #a40000; }
@media (prefers-color-scheme: dark) { :root { --ink: #f2f2f2; --ground: #161616; --line: #a0a0a0; --bad: #ff9d9d; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
main { max-width: 26rem; margin: 0 auto; padding: 1.5rem 1rem; }
.brand { font-weight: 600; margin: 0 0 1rem; }
h1 { font-size: 1.4rem; line-height: 1.25; margin: 0 0 1rem; }
form { margin: 0 0 1.5rem; }
label { display: block; font-weight: 600; margin: 0 0 0.25rem; }
input[type="email"], input[type="text"] { width: 100%; min-height: 2.75rem; padding: 0.5rem; font: inherit; color: inherit; background: var(--ground); border: 1px solid var(--line); border-radius: 0.25rem; margin: 0 0 1rem; }
button { width: 100%; min-height: 2.75rem; padding: 0.5rem 1rem; font: inherit; font-weight: 600; color: var(--on-brand); background: var(--brand); border: 2px solid var(--ink); border-radius: 0.25rem; cursor: pointer; }
a.button { display: block; min-height: 2.75rem; padding: 0.5rem 1rem; text-align: center; font-weight: 600; color: inherit; text-decoration: none; border: 2px solid var(--line); border-radius: 0.25rem; }
.others { list-style: none; padding: 0; }
.others li { margin: 0 0 0.75rem; }
a { color: inherit; }
button.plain { color: inherit; background: transparent; }
:focus-visible { outline: 3px solid var(--ink); outline-offset: 2px; }
h2 { font-size: 1.1rem; margin: 1.5rem 0 0.5rem; }
ul { padding-left: 1.25rem; }
.picture { background: #ffffff; width: 14rem; max-width: 100%; }
.bad { color: var(--bad); font-weight: 600; }
`,
  };
}
