import { join } from "node:path";
import type { LayoutMode } from "@holdfast/tds/bind/databases.ts";
import { type Collation, defaultCollation, findCollation } from "@holdfast/tds/types/collation.ts";
import type { Instance } from "../engine-driver.ts";

/** Layout of the databases of T-SQL clients. */
export function layoutOf({ layoutMode }: Pick<Instance["spec"], "layoutMode">): LayoutMode {
  return layoutMode === "multi-db" ? "multi-db" : "single-db";
}

/** Collation of the texts of T-SQL clients. */
export function collationOf({ serverCollation }: Pick<Instance["spec"], "serverCollation">): Collation {
  return findCollation(serverCollation) ?? defaultCollation;
}

/** Unix socket of the T-SQL front end, behind HAProxy. */
export const frontEndSocket = ({ paths }: Pick<Instance, "paths">): string => join(paths.run, "tds.sock");
/** Unix socket that reports the counts of the front end. */
export const usageSocket = ({ paths }: Pick<Instance, "paths">): string => join(paths.run, "tds-usage.sock");
/** Socket for commands to HAProxy. */
export const commandSocket = ({ paths }: Pick<Instance, "paths">): string => join(paths.run, "listener.sock");
/** Path of HAProxy's executable in the image, by the directory of a version of PostgreSQL. */
export const frontProgram = (software: string): string => join(software, "../../../sbin/haproxy");
