import type { DeployedProject, Deployment, ProjectPlan } from "./answers.ts";
import { ProjectMethods } from "./methods.ts";
import type { CallOptions } from "./transport.ts";
import { untilOver, type Limits } from "./wait.ts";

/** A descriptor of a project; GET /schemas/project.json says what it may have. */
export type ProjectDescriptor = Readonly<Record<string, unknown>>;

/** The deployment failed or was aborted. */
export class DeploymentFailed extends Error {
  override readonly name = "DeploymentFailed";
  readonly deployment: Deployment;

  constructor(deployment: Deployment) {
    super(deployment.error ?? `the deployment is ${deployment.status}`);
    this.deployment = deployment;
  }
}

/** How long to wait, and whom to tell meanwhile. */
export interface DeploymentWaitOptions extends Limits {
  /** Told of each change of the progress. */
  readonly onProgress?: ((deployment: Deployment) => void) | undefined;
}

/** Resources and what they depend on, described in one document. */
export class Projects extends ProjectMethods {
  /** What a deployment of the descriptor would change, and what it would cost. Changes nothing. */
  plan(descriptor: ProjectDescriptor, options?: CallOptions): Promise<ProjectPlan> {
    return this.transport.request("POST", "/projects/plan", { ...options, body: { descriptor } });
  }

  /** Brings a project to its descriptor. With the digest of a plan it is refused when the plan is another one by then. */
  deploy(
    descriptor: ProjectDescriptor,
    { planDigest, ...options }: CallOptions & { readonly planDigest?: string | undefined } = {},
  ): Promise<DeployedProject> {
    const body = { descriptor, ...(planDigest !== undefined && { plan_digest: planDigest }) };
    return this.transport.request("POST", "/projects/deploy", { ...options, body });
  }

  /** Waits until the deployment is over. Throws DeploymentFailed, WaitTimedOut, or the signal's reason. */
  async waitForDeployment(
    name: string,
    deploymentId: string,
    { timeoutMs = 1_800_000, signal, onProgress }: DeploymentWaitOptions = {},
  ): Promise<Deployment> {
    let last = "";
    let wasSeen = false;
    const look = async () => {
      const now = await this.deployment(name, deploymentId, { signal });
      wasSeen = true;
      if (now.status === "Failed" || now.status === "Aborted") throw new DeploymentFailed(now);
      if (now.status === "Completed") return { found: now };
      const text = JSON.stringify(now.resources);
      if (text !== last) onProgress?.(now);
      last = text;
      return undefined;
    };
    const options = { timeoutMs, signal, mayBeAway: () => wasSeen };
    const found = await untilOver(look, "the deployment was not over", options);
    if (found === undefined) throw new Error("a wait for a deployment ends with it");
    return found;
  }

  /** Waits until nothing is left of the project's resources. */
  async waitUntilDeleted(name: string, { timeoutMs = 1_800_000, signal }: Limits = {}): Promise<void> {
    const look = async () => {
      const now = await this.get(name, { signal });
      return now.status === "Deleted" ? { found: now } : undefined;
    };
    await untilOver(look, "the project was not Deleted", { timeoutMs, signal, mayBeAway: () => true });
  }
}
