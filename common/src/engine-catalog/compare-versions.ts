/** Pure: below 0 when `a` is the older one of two versions, above 0 when it is the newer one. `17.9` is before `17.10`. */
export function compareVersions(a: string, b: string): number {
  const [one, other] = [a, b].map((text) => text.split(".").map(Number)) as [number[], number[]];
  for (let at = 0; at < Math.max(one.length, other.length); at += 1) {
    const difference = (one[at] ?? 0) - (other[at] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
