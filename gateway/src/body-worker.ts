import { serveThread } from "@holdfast/common/worker-thread.ts";
import type { BodyRequest, ThreadBody } from "./body-thread.ts";
import type { JsonObject } from "./json/json-node.ts";
import { hashOf } from "./json/json-node.ts";
import { maxValues, readJson } from "./json/parse-json.ts";
import { prune } from "./json/body-shape.ts";

/** The worker thread of body-thread.ts. */
serveThread<BodyRequest, ThreadBody>(({ bytes, shape, keyed }) => {
  const read = readJson(bytes, maxValues);
  if ("code" in read) return { response: read };
  const value = prune(read.value, shape, read.text);
  return { response: { value, ...(keyed ? { hash: hashOf(read.value) } : {}) }, transfer: buffersOf(value) };
});

function buffersOf(object: JsonObject): ArrayBuffer[] {
  return [...object.members.values()].flatMap(({ value, raw }) => {
    if (raw !== undefined) return [raw.buffer as ArrayBuffer];
    if (value === null || typeof value !== "object" || value.kind === "number") return [];
    const within = value.kind === "object" ? [value] : value.items;
    return within.flatMap((item) =>
      item !== null && typeof item === "object" && item.kind === "object" ? buffersOf(item) : [],
    );
  });
}
