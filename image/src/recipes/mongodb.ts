import type { GoProgram } from "../artifact.ts";
import { basePackages, type Recipe } from "../recipe.ts";

/** Translates MongoDB's protocol to calls of the extension DocumentDB. */
const ferretdb = {
  module: "github.com/FerretDB/FerretDB/v2",
  version: "v2.7.0",
  sum: "h1:e68kyioANdGrATjgVINPCJgsSN7H+cOPMDGvJoYxz5E=",
  package: "github.com/FerretDB/FerretDB/v2/cmd/ferretdb",
} as const satisfies GoProgram;

/** PostgreSQL with the extension DocumentDB, and FerretDB and HAProxy in front of it. */
export const mongodb = {
  suite: "sid",
  packages: [...basePackages, "haproxy", "locales-all", "postgresql-18", "postgresql-18-documentdb"],
  software: [
    {
      program: "mongodb",
      version: "ferretdb-2",
      path: "/usr/lib/postgresql/18",
      executable: "postgres",
      package: "postgresql-18",
    },
  ],
  artifacts: [{ kind: "go", ...ferretdb, path: "/usr/local/bin/ferretdb" }],
} as const satisfies Recipe;
