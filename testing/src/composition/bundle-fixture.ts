import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Deployment, Project } from "@holdfast/sdk/index.ts";
import type { RestResponse } from "../api/rest-response.ts";
import { createCommandLine, type CommandResult } from "../platform/command-line.ts";
import { type Platform, startPlatform } from "../platform/platform.ts";
import { expectStatus } from "../platform/services.ts";
import { waitUntil } from "../wait-until.ts";

/** A platform with test templates, for suites of projects, stacks and pipelines. */
export interface BundleFixture {
  readonly platform: Platform;
  /** Writes a descriptor to a file; returns its path. */
  fileOf(descriptor: object): string;
  /** A controller reads it when it starts. */
  writeTemplate(kind: "stacks" | "pipelines", name: string, version: string, template: object): void;
  cli(...args: readonly string[]): Promise<CommandResult>;
  project(name: string): Promise<Project>;
  deploy(descriptor: object): Promise<RestResponse<{ deployment_id: string; code?: string }>>;
  /** The record of a deployment that has ended, from any controller. */
  ended(name: string, deploymentId: string): Promise<Deployment>;
  /** The response once it succeeds: a controller may be down. */
  eventually<T>(path: string): Promise<T>;
  remove(): Promise<void>;
}

type WriteTemplate = BundleFixture["writeTemplate"];

/** `prepare` writes the templates that the first controller reads; `environment` extends the platform's. */
export async function startBundleFixture(
  prepare: (write: WriteTemplate) => void,
  environment: Readonly<Record<string, string>> = {},
): Promise<BundleFixture> {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-delivery-"));
  const templates = join(directory, "templates");
  const writeTemplate: WriteTemplate = (kind, name, version, template) => {
    const folder = join(templates, kind, name);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, `${version}.yaml`), JSON.stringify(template));
  };
  prepare(writeTemplate);
  const platform = await startPlatform({ environment: { HOLDFAST_TEMPLATES: templates, ...environment } });

  const eventually = <T>(path: string) =>
    waitUntil(
      `${path} answers`,
      async () => {
        const response = await platform.rest.get<T>(path).catch(() => undefined);
        return response?.status === 200 ? response.json : undefined;
      },
      { withinMs: 90_000 },
    );
  return {
    platform,
    writeTemplate,
    eventually: eventually,
    fileOf(descriptor) {
      const file = join(directory, "holdfast.yaml");
      writeFileSync(file, JSON.stringify(descriptor));
      return file;
    },
    async cli(...args) {
      const line = createCommandLine({ HOLDFAST_DATA: platform.directory });
      try {
        return await line.runHere(args);
      } finally {
        line.remove();
      }
    },
    project: async (name) => expectStatus(await platform.rest.get<Project>(`/projects/${name}`), 200).json,
    deploy: (descriptor) => platform.rest.post("/projects/deploy", { descriptor }),
    ended: (name, deploymentId) =>
      waitUntil(
        `deployment ${deploymentId} of ${name} is over`,
        async () => {
          const record = await eventually<Deployment>(`/projects/${name}/deployments/${deploymentId}`);
          return record.finished_at === null ? undefined : record;
        },
        { withinMs: 180_000 },
      ),
    async remove() {
      await platform.remove();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** The spec of a Valkey in a template. */
export function valkeySpec(plan = "tier-1") {
  return { database_type: "valkey", plan_name: plan, storage_size_gb: 1 };
}
