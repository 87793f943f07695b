import { quoteName } from "../bind/object-name.ts";
import { databases, type InstallationOptions } from "./install-databases.ts";
import { functions } from "./install-functions.ts";
import { textFunctions } from "./install-text-functions.ts";
import { types } from "./install-types.ts";
import { views } from "./install-views.ts";

/**
 * The statements that prepare a database, by a superuser: `dbo`, the schema `holdfast_tsql` with types and functions
 * that translated statements use, and the views of the catalog. They may run again, after an update of the front end;
 * the layout of a service never changes.
 */
export function installation(options: InstallationOptions): string {
  // Texts of the catalog compare in the collation of the service; names in functions ignore their case in every one.
  const catalog = views.replaceAll("holdfast_tsql.ci_as", `holdfast_tsql.${quoteName(options.collation.backend)}`);
  return [types, databases(options), functions, textFunctions, catalog].join("\n");
}
