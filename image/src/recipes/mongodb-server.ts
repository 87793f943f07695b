import { basePackages, type Recipe } from "../recipe.ts";

/** Series of the server. */
export const mongodSeries = "8.0";

/** Path of the server in an image, which has nothing else of its package. */
export const mongodPath = "/usr/local/bin/mongod";

/** Package of the server by its makers. No registry has it, so the operator adds it. */
export const mongodPackage = "mongodb-org-server";

/** MongoDB's own server, with the libraries that it loads, and HAProxy in front of it. */
export const mongod = {
  suite: "trixie",
  packages: [...basePackages, "haproxy", "libcurl4t64", "libgcc-s1", "liblzma5", "libssl3t64"],
  software: [
    { program: "mongodb", version: mongodSeries, path: "/usr/local", executable: "mongod", package: mongodPackage },
  ],
} as const satisfies Recipe;
