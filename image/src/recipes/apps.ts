import { basePackages, type Recipe } from "../recipe.ts";

/**
 * Machines of hosted apps: skopeo pulls an image, umoci unpacks it, runc runs it as a container with a network by pasta
 * (passt) and a packet filter (nftables), and HAProxy is the front before its releases. The platform's registry of
 * images is Debian's docker-registry.
 */
export const apps = {
  suite: "trixie",
  packages: [...basePackages, "docker-registry", "haproxy", "nftables", "passt", "runc", "skopeo", "umoci"],
  software: [
    { program: "app", version: "1", path: "/usr", executable: "runc", package: "runc" },
    { program: "registry", version: "2", path: "/usr", executable: "docker-registry", package: "docker-registry" },
  ],
} as const satisfies Recipe;
