import type { FieldFault } from "@holdfast/common/errors.ts";

/** Where in the input a value is: a chain from the value up. Undefined is the whole body. */
export interface Place {
  readonly parent: Place | undefined;
  readonly key: string | number;
}

/** Collects every fault of one input, so that they are all in one answer. */
export interface Faults {
  readonly list: readonly FieldFault[];
  at(place: Place | undefined, code: string, detail: string): void;
  /** About a parameter of the path, the query or a header: there is no pointer. */
  parameter(name: string, code: string, detail: string): void;
  /** Adds what is not about a field that has a fault already. */
  add(faults: readonly FieldFault[]): void;
  /** True when the field, or what it is in, has a fault already. */
  covers(field: string): boolean;
}

export function createFaults(): Faults {
  const list: FieldFault[] = [];
  const covers = (field: string) =>
    list.some(
      (fault) => field === fault.field || field.startsWith(`${fault.field}.`) || field.startsWith(`${fault.field}[`),
    );
  return {
    list,
    at: (place, code, detail) => void list.push({ field: fieldOf(place), pointer: pointerOf(place), code, detail }),
    parameter: (name, code, detail) => void list.push({ field: name, pointer: null, code, detail }),
    add: (faults) => void list.push(...faults.filter(({ field }) => !covers(field))),
    covers,
  };
}

/** Dotted form: `allowed_cidrs[0]`, `tags.team`, `tags["a b"]`. */
export function fieldOf(place: Place | undefined): string {
  if (place === undefined) return "";
  const parent = fieldOf(place.parent);
  if (typeof place.key === "number") return `${parent}[${place.key}]`;
  if (!/^[\w-]+$/.test(place.key)) return `${parent}[${JSON.stringify(place.key)}]`;
  return parent === "" ? place.key : `${parent}.${place.key}`;
}

/** RFC 6901. */
function pointerOf(place: Place | undefined): string {
  if (place === undefined) return "";
  return `${pointerOf(place.parent)}/${String(place.key).replaceAll("~", "~0").replaceAll("/", "~1")}`;
}
