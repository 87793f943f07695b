/**
 * The one-time code in the fragment of the address, which `holdfast console` opens. It is removed from the address and
 * the history before anything is sent.
 */
export function takeCode(
  location: Pick<Location, "hash" | "pathname" | "search">,
  history: Pick<History, "replaceState">,
): string | undefined {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code === null) return undefined;
  history.replaceState(null, "", `${location.pathname}${location.search}`);
  return code;
}
