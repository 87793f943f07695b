/**
 * The private form of a public name, which resolves to private addresses: `db-abcdefgh.private.local.example` for
 * `db-abcdefgh.local.example`. The label `private` is separate, so that no service's name can collide with it.
 */
export function privateNameOf(name: string): string {
  const [label, ...rest] = name.split(".");
  return [label, "private", ...rest].join(".");
}
