import { first } from "./first.ts";
import { second } from "./second.ts";

/** Statements of each version of the schema, the first version first. One that was released never changes. */
export const authSchemaVersions: readonly (readonly string[])[] = [first, second];
