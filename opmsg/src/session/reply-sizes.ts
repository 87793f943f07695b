import { bsonTypes, documentsOf, type Field, fieldsNamed, fieldsOf, numberOf, textOf } from "../protocol/fields.ts";
import type { Request } from "../protocol/request.ts";
import { replyBytesMax } from "./memory.ts";

/** Commands whose replies have documents of users. */
const reading = ["aggregate", "distinct", "find", "findAndModify", "findandmodify", "getMore"];
/** Fields whose names inside are a part of what a command reads. */
const conditions = ["filter", "pipeline", "query"];
/** Fields whose values limit the number of documents. */
const counts = ["batchSize", "limit"];
const formLengthMax = 500;
/** Documents grow between two reads. */
const growth = 2;

/** Sizes of replies that were seen, by which those to come are expected. */
export interface ReplySizes {
  /**
   * Bytes that the reply may have: twice the largest of an earlier reply to such a request, and the maximum for the
   * first one. 0 for a command whose replies have no documents of users.
   */
  expected(request: Pick<Request, "command" | "fields">): number;
  seen(request: Pick<Request, "command" | "fields">, size: number): void;
}

/** `max`: number of forms of requests whose sizes are remembered; of others the least recently used is forgotten. */
export function createReplySizes(max: number): ReplySizes {
  const sizes = new Map<string, number>();
  return {
    expected(request) {
      if (!reading.includes(request.command)) return 0;
      const size = sizes.get(formOf(request));
      return size === undefined ? replyBytesMax : Math.min(size * growth, replyBytesMax);
    },
    seen(request, size) {
      if (!reading.includes(request.command)) return;
      const form = formOf(request);
      const largest = Math.max(size, sizes.get(form) ?? 0);
      sizes.delete(form);
      sizes.set(form, largest);
      const [oldest] = sizes.keys();
      if (sizes.size > max && oldest !== undefined) sizes.delete(oldest);
    },
  };
}

/** Command, database, collection, limits, and the names of options, conditions and stages without their values. */
function formOf({ command, fields }: Pick<Request, "command" | "fields">): string {
  const [first] = fields;
  const [database] = fieldsNamed(fields, "$db");
  const collection = command === "getMore" ? fieldsNamed(fields, "collection")[0] : first;
  const names = fields.map((field) => {
    if (conditions.includes(field.name)) return [field.name, ...namesIn(field)];
    return counts.includes(field.name) ? [field.name, numberOf(field)] : field.name;
  });
  const form = JSON.stringify([command, database && textOf(database), collection && textOf(collection), names]);
  // Forms that differ only beyond share their largest reply.
  return form.slice(0, formLengthMax);
}

function namesIn(field: Field): string[] {
  if (field.type === bsonTypes.document) return fieldsOf(field.value).map(({ name }) => name);
  return documentsOf(field).flatMap((stage) => stage.map(({ name }) => name));
}
