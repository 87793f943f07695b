import { join } from "node:path";

/** An installed supervisor runs the platform of this machine, or a host of another machine's installation. */
export const installedKinds = ["platform", "host"] as const;
export type InstalledKind = (typeof installedKinds)[number];

/** Paths of an installed Holdfast, by the Filesystem Hierarchy Standard (3.0, sections 3.13, 4.9, 5.8). */
export interface InstalledPaths {
  /** A directory for each release, named by its id. */
  readonly releases: string;
  /** Link to the release that starts next. */
  readonly current: string;
  /** Link to the data directory of the platform, which commands use by default. */
  readonly dataLink: string;
  /** The command `holdfast`. */
  readonly launcher: string;
  /** Units of systemd. */
  readonly units: string;
  /** Settings files of the units. */
  readonly settings: string;
  /** Software and images that can be created again (HOLDFAST_CACHE). */
  readonly cache: string;
  /** Data directory of each kind, unless --data names another one, and of a controller's host. */
  readonly data: Readonly<Record<InstalledKind | "controller", string>>;
}

/** Paths below a root, which only tests choose. */
export function installedPaths(root = "/"): InstalledPaths {
  const below = (path: string) => join(root, path);
  return {
    releases: below("opt/holdfast/releases"),
    current: below("opt/holdfast/current"),
    dataLink: below("opt/holdfast/data"),
    launcher: below("usr/local/bin/holdfast"),
    units: below("etc/systemd/system"),
    settings: below("etc/holdfast"),
    cache: below("var/lib/holdfast/cache"),
    data: {
      platform: below("var/lib/holdfast/data"),
      host: below("var/lib/holdfast/host"),
      controller: below("var/lib/holdfast/controller"),
    },
  };
}

/** Name of the unit of systemd. */
export const unitNames: Readonly<Record<InstalledKind, string>> = {
  platform: "holdfast.service",
  host: "holdfast-host.service",
};

/** Path of the settings file of a unit. */
export function settingsFileOf({ settings }: InstalledPaths, kind: InstalledKind): string {
  return join(settings, kind === "platform" ? "holdfast.env" : "holdfast-host.env");
}
