import { basePackages, type Recipe } from "../recipe.ts";

export const trixie = {
  suite: "trixie",
  packages: [
    ...basePackages,
    "etcd-client",
    "etcd-server",
    "haproxy",
    "locales-all",
    "pgbouncer",
    "postgresql-17",
    "postgresql-17-pgvector",
    "valkey-server",
    "valkey-tools",
  ],
  software: [
    {
      program: "postgresql",
      version: "17",
      path: "/usr/lib/postgresql/17",
      executable: "postgres",
      package: "postgresql-17",
    },
    { program: "valkey", version: "8.1", path: "/usr", executable: "valkey-server", package: "valkey-server" },
    { program: "etcd", version: "3.5", path: "/usr", executable: "etcd", package: "etcd-server" },
  ],
} as const satisfies Recipe;
