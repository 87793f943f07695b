// A browser also names those that it is compatible with: the first match counts.
const browsers = [
  ["Edge", /Edg(?:e|A|iOS)?\/(\d+)/],
  ["Opera", /OPR\/(\d+)/],
  ["Firefox", /(?:Firefox|FxiOS)\/(\d+)/],
  ["Chrome", /(?:Headless)?(?:Chrome|CriOS)\/(\d+)/],
  ["Safari", /Version\/(\d+).* Safari\//],
] as const;
const systems = [
  ["Android", /Android/],
  ["iOS", /iPhone|iPad/],
  ["Windows", /Windows/],
  ["macOS", /Mac OS X/],
  ["Linux", /Linux|X11/],
] as const;

/** Browser and system of a user agent: "Firefox 140 on Linux". The text itself for an unknown one. */
export function browserName(userAgent: string): string {
  const [name, pattern] = browsers.find(([, each]) => each.test(userAgent)) ?? [];
  if (name === undefined) return userAgent === "" ? "unknown" : userAgent;
  const version = pattern?.exec(userAgent)?.[1] ?? "";
  const [system] = systems.find(([, each]) => each.test(userAgent)) ?? [];
  return `${name} ${version}${system === undefined ? "" : ` on ${system}`}`;
}
