/** The version number in an engine's version string: `17.11` of `17.11 (Debian 17.11-0+deb13u1)`. */
export function versionNumber(text: string): string {
  return /^\d+(\.\d+)*/.exec(text)?.[0] ?? "";
}
