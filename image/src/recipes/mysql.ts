import { basePackages, type Recipe } from "../recipe.ts";

export const mysql = {
  suite: "sid",
  packages: [...basePackages, "haproxy", "mysql-client", "mysql-server-core"],
  software: [{ program: "mysql", version: "9.7", path: "/usr", executable: "mysqld", package: "mysql-server-core" }],
} as const satisfies Recipe;
