/**
 * The name by which a public name's private address is found: `db-abcdefgh.private.local.example` of
 * `db-abcdefgh.local.example`. A label of its own, so that no service's name can be it, and the first label stays as short
 * as it was.
 */
export function privateNameOf(name: string): string {
  const [label, ...rest] = name.split(".");
  return [label, "private", ...rest].join(".");
}
