import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

/** The server, and a user with its password: `TDS_TARGET` is JSON. */
export const target = JSON.parse(process.env.TDS_TARGET ?? "{}");

/** Loads a package of the directory that was installed for this program. */
export const load = createRequire(join(process.env.TDS_PACKAGES ?? "", "index.js"));

/** Options of tedious: the certificate is verified. */
export const driverOptions = {
  encrypt: true,
  trustServerCertificate: false,
  cryptoCredentialsDetails: { ca: readFileSync(target.ca, "utf8") },
};

/** Runs a step and prints its value or its error as a line of JSON. */
export async function step(name, run) {
  try {
    const value = (await run()) ?? null;
    process.stdout.write(`${JSON.stringify({ name, value })}\n`);
  } catch (error) {
    process.stdout.write(`${JSON.stringify({ name, error: `${error.number ?? error.original?.number ?? ""} ${error.message}` })}\n`);
  }
}
