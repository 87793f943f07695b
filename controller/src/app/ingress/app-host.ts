import type { AppObject } from "../app/app.ts";

/** Maximum length of a label of a name (RFC 1035, 2.3.4), and of the part of an app's id in it. */
const labelMax = 63;
const idLength = 12;

/** The name of a hosted app, such as `shop-1d2b0c9e7f10.apps.holdfast.test`. It never changes. */
export function appHost({ metadata: { id, name } }: AppObject, domain: string): string {
  const part = name.slice(0, labelMax - idLength - 1).replace(/-+$/, "");
  return `${part}-${id.replaceAll("-", "").slice(-idLength)}.apps.${domain}`;
}
