import { basePackages, type Recipe } from "../recipe.ts";

export const tsql = {
  suite: "trixie",
  packages: [...basePackages, "freetds-bin", "haproxy", "locales-all", "postgresql-17", "postgresql-17-pgvector"],
  software: [
    {
      program: "tsql",
      version: "17",
      path: "/usr/lib/postgresql/17",
      executable: "postgres",
      package: "postgresql-17",
    },
  ],
} as const satisfies Recipe;
