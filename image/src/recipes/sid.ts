import { basePackages, type Recipe } from "../recipe.ts";

export const sid = {
  suite: "sid",
  packages: [
    ...basePackages,
    "haproxy",
    "locales-all",
    "pgbouncer",
    "postgresql-18",
    "postgresql-18-pgvector",
    "valkey-server",
    "valkey-tools",
  ],
  software: [
    {
      program: "postgresql",
      version: "18",
      path: "/usr/lib/postgresql/18",
      executable: "postgres",
      package: "postgresql-18",
    },
    { program: "valkey", version: "9", path: "/usr", executable: "valkey-server", package: "valkey-server" },
  ],
  // The former major version, which pg_upgrade starts on the old data; no service runs on it.
  beside: { suite: "trixie", packages: ["postgresql-17", "postgresql-17-pgvector"] },
} as const satisfies Recipe;
