/**
 * True for one plain address of printable ASCII without quotes, comments or lists (a subset of RFC 5322), so that no
 * part of it can become a header.
 */
export function isMailAddress(text: string): boolean {
  const [local = "", domain = "", ...more] = text.split("@");
  if (more.length > 0 || local.length > 64 || text.length > 254) return false;
  const atom = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/;
  const label = /^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/;
  return atom.test(local) && domain !== "" && domain.split(".").every((part) => label.test(part));
}
