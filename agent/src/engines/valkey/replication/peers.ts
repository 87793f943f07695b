import type { ReplicationPeer } from "../../replication-facet.ts";
import { memberNumber } from "./peer-way.ts";

/** Pure: of lines such as slave0:ip=...,port=6379,state=online,offset=56,lag=0. */
export function peersOf(info: ReadonlyMap<string, string>): ReplicationPeer[] {
  const lines = [...info].flatMap(([name, value]) => (/^slave\d+$/.test(name) ? [value] : []));
  return lines.flatMap((line) => {
    const fields = new Map(line.split(",").map((field) => field.split("=", 2) as [string, string]));
    const number = memberNumber(fields.get("ip") ?? "");
    const position = fields.get("offset") ?? "";
    const state = fields.get("state") === "online" ? "streaming" : "backup";
    return number === undefined ? [] : [{ number, state, position, replayedPosition: position, since: undefined }];
  });
}
