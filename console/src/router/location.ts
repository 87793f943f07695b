import { signal } from "@preact/signals";

/** The prefix of all pages. */
const base = "/console";

/** Path and query of the page, without the prefix. */
export const currentAddress = signal(current());

function current(): { readonly path: string; readonly query: URLSearchParams } {
  const { pathname, search } = globalThis.location;
  const path = pathname.startsWith(base) ? pathname.slice(base.length) : pathname;
  return { path: path === "" ? "/" : path, query: new URLSearchParams(search) };
}

/** The address of a page; parts are escaped. */
export function hrefOf(...parts: readonly string[]): string {
  return `${base}/${parts.map(encodeURIComponent).join("/")}`;
}

/** Opens a page of the console. */
export function openPage(href: string): void {
  globalThis.history.pushState(null, "", href);
  currentAddress.value = current();
  globalThis.scrollTo(0, 0);
  // Screen readers begin at the heading of the new page.
  requestAnimationFrame(() => document.querySelector<HTMLElement>("#content")?.focus({ preventScroll: true }));
}

/** Parameters of the query of a page; undefined or an empty text removes one. */
type QueryChange = Readonly<Record<string, string | undefined>>;

/** Sets parameters of the query of the page without a new history entry, such as by a key in a text field. */
export function setQuery(values: QueryChange): void {
  globalThis.history.replaceState(null, "", withQuery(values));
  currentAddress.value = current();
}

/** Sets parameters of the query by one choice of the user, such as a zoom. Back returns to the former ones. */
export function chooseQuery(values: QueryChange): void {
  const href = withQuery(values);
  if (href === withQuery({})) return;
  globalThis.history.pushState(null, "", href);
  currentAddress.value = current();
}

function withQuery(values: QueryChange): string {
  const query = new URLSearchParams(currentAddress.value.query);
  for (const [name, value] of Object.entries(values))
    if (value === undefined || value === "") query.delete(name);
    else query.set(name, value);
  const text = query.toString();
  return `${globalThis.location.pathname}${text === "" ? "" : `?${text}`}`;
}

/** Opens links to pages of the console without loading the document again. */
export function followLinks(): void {
  globalThis.addEventListener("popstate", () => {
    currentAddress.value = current();
  });
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (link === null || !isPlain || event.defaultPrevented) return;
    if (link.target !== "" || link.origin !== globalThis.location.origin || !link.pathname.startsWith(`${base}/`))
      return;
    if (link.hash !== "" && link.pathname === globalThis.location.pathname) return;
    event.preventDefault();
    openPage(`${link.pathname}${link.search}`);
  });
}
