import { join } from "node:path";
import type { InstancePaths } from "../engine-driver.ts";

type Paths = { readonly paths: Pick<InstancePaths, "run"> };

/** The two processes of FerretDB, by what their users may do. */
export type Access = "readwrite" | "readonly";

/** Unix socket of a process of FerretDB, behind the front end. */
export const documentsSocket = ({ paths }: Paths, access: Access): string =>
  join(paths.run, `documents-${access}.sock`);
/** Unix socket of the front end, behind HAProxy. */
export const frontEndSocket = ({ paths }: Paths): string => join(paths.run, "opmsg.sock");
/** Unix socket at which the front end reports its counts. */
export const statusSocket = ({ paths }: Paths): string => join(paths.run, "opmsg-status.sock");
/** Socket for commands to HAProxy. */
export const commandSocket = ({ paths }: Paths): string => join(paths.run, "listener.sock");

/** Path of HAProxy's executable in the image, by the directory of a version of PostgreSQL. */
export const frontProgram = (software: string): string => join(software, "../../../sbin/haproxy");
/** Path of FerretDB's executable in the image. */
export const documentsProgram = (software: string): string => join(software, "../../../local/bin/ferretdb");

/** Version of PostgreSQL in the image of a version of this engine. */
export const postgresqlVersion = "18";
