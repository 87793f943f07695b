import type { Layout } from "./layout.ts";

/** What `npm start` ends with: where things are, three lines to paste, and how services are reached from elsewhere. */
export function welcome(
  baseUrl: string,
  layout: Layout,
  isDefaultDirectory: boolean,
  fromElsewhere: readonly string[],
): string {
  const holdfast = isDefaultDirectory ? "./bin/holdfast.js" : `HOLDFAST_DATA=${layout.root} ./bin/holdfast.js`;
  return [
    "",
    `Holdfast runs at ${baseUrl} (REST and gRPC). Ctrl-C stops it and keeps everything.`,
    `Credentials: ${layout.admin}`,
    "",
    "A first database, from another terminal in this directory:",
    "",
    `  ${holdfast} services create first --type postgresql --plan tier-1 --storage-gb 1`,
    `  ${holdfast} services wait first`,
    `  psql "$(${holdfast} services connect first --conninfo)"`,
    "",
    ...(fromElsewhere.length === 0 ? [] : [...fromElsewhere, ""]),
  ].join("\n");
}
