import { errorsMax, type FieldFault } from "@holdfast/common/errors.ts";

/** Where in the input a value is: a chain from the value up. Undefined is the whole body. */
export interface Place {
  readonly parent: Place | undefined;
  readonly key: string | number;
}

/** Collects the faults of one input, so that the first of them are all in one answer. */
export interface Faults {
  /** The first ones, `errorsMax` at most. */
  readonly list: readonly FieldFault[];
  /** How many more there were. */
  readonly omitted: number;
  at(place: Place | undefined, code: string, detail: string): void;
  /** About a parameter of the path, the query or a header: there is no pointer. */
  parameter(name: string, code: string, detail: string): void;
  /** Adds the faults of fields that have none yet. */
  add(faults: readonly FieldFault[]): void;
  /** True when the field, or a field around it, has a fault already. */
  covers(field: string): boolean;
}

export function createFaults(): Faults {
  const list: FieldFault[] = [];
  let omitted = 0;
  const covers = (field: string) =>
    list.some(
      (fault) => field === fault.field || field.startsWith(`${fault.field}.`) || field.startsWith(`${fault.field}[`),
    );
  // A fault costs its text only when somebody will read it.
  const note = (fault: () => FieldFault) => {
    if (list.length < errorsMax) list.push(fault());
    else omitted += 1;
  };
  return {
    list,
    get omitted() {
      return omitted;
    },
    at: (place, code, detail) => note(() => ({ field: fieldOf(place), pointer: pointerOf(place), code, detail })),
    parameter: (name, code, detail) => note(() => ({ field: shown(name), pointer: null, code, detail })),
    add(faults) {
      for (const fault of faults) if (!covers(fault.field)) note(() => fault);
    },
    covers,
  };
}

/** Dotted form: `allowed_cidrs[0]`, `tags.team`, `tags["a b"]`. A long key shows its beginning. */
export function fieldOf(place: Place | undefined): string {
  if (place === undefined) return "";
  const parent = fieldOf(place.parent);
  if (typeof place.key === "number") return `${parent}[${place.key}]`;
  const key = shown(place.key);
  if (!/^[\w-]+$/.test(key)) return `${parent}[${JSON.stringify(key)}]`;
  return parent === "" ? key : `${parent}.${key}`;
}

/** RFC 6901. */
function pointerOf(place: Place | undefined): string {
  if (place === undefined) return "";
  return `${pointerOf(place.parent)}/${shown(String(place.key)).replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

/** Longer than every name of a field or parameter, so that only names that a caller made up are cut. */
const shownMax = 128;

function shown(key: string): string {
  return key.length <= shownMax ? key : `${key.slice(0, shownMax).toWellFormed()}…`;
}
