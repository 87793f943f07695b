import { errorsMax, type FieldFault } from "@holdfast/common/errors.ts";

/** The path of a value in the input, a linked list from the value to the root; undefined is the body itself. */
export interface ValuePath {
  readonly parent: ValuePath | undefined;
  readonly key: string | number;
}

/** Collects the faults of one input, so that one response lists the first of them. */
export interface Faults {
  /** The first faults, at most `errorsMax`. */
  readonly list: readonly FieldFault[];
  /** Number of faults that are not in the list. */
  readonly omitted: number;
  at(path: ValuePath | undefined, code: string, detail: string): void;
  /** Adds a fault of a path variable, a query parameter or a header, which has no JSON pointer. */
  parameter(name: string, code: string, detail: string): void;
  /** Adds the faults of fields that have none yet. */
  add(faults: readonly FieldFault[]): void;
  /** True if the field, or a field that contains it, has a fault already. */
  covers(field: string): boolean;
}

export function createFaults(): Faults {
  const list: FieldFault[] = [];
  let omitted = 0;
  const covers = (field: string) =>
    list.some(
      (fault) => field === fault.field || field.startsWith(`${fault.field}.`) || field.startsWith(`${fault.field}[`),
    );
  // The text of a fault is built only when the fault is listed.
  const note = (fault: () => FieldFault) => {
    if (list.length < errorsMax) list.push(fault());
    else omitted += 1;
  };
  return {
    list,
    get omitted() {
      return omitted;
    },
    at: (path, code, detail) => note(() => ({ field: fieldOf(path), pointer: pointerOf(path), code, detail })),
    parameter: (name, code, detail) => note(() => ({ field: shortened(name), pointer: null, code, detail })),
    add(faults) {
      for (const fault of faults) if (!covers(fault.field)) note(() => fault);
    },
    covers,
  };
}

/** The dotted form, such as `allowed_cidrs[0]`, `tags.team` or `tags["a b"]`. Long keys are shortened. */
export function fieldOf(path: ValuePath | undefined): string {
  if (path === undefined) return "";
  const parent = fieldOf(path.parent);
  if (typeof path.key === "number") return `${parent}[${path.key}]`;
  const key = shortened(path.key);
  if (!/^[\w-]+$/.test(key)) return `${parent}[${JSON.stringify(key)}]`;
  return parent === "" ? key : `${parent}.${key}`;
}

/** The JSON pointer (RFC 6901), such as `/allowed_cidrs/0`. */
function pointerOf(path: ValuePath | undefined): string {
  if (path === undefined) return "";
  return `${pointerOf(path.parent)}/${shortened(String(path.key)).replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

/** Maximum length of names in faults. Names of the API are shorter, so only unknown names are shortened. */
const nameCharsMax = 128;

function shortened(key: string): string {
  return key.length <= nameCharsMax ? key : `${key.slice(0, nameCharsMax).toWellFormed()}…`;
}
