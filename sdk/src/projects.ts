import type { DeployedProject, Deployment, ProjectPlan } from "./responses.ts";
import { ProjectMethods } from "./methods.ts";
import type { CallOptions } from "./transport.ts";
import { pollUntil, type WaitLimits } from "./wait.ts";

/** A descriptor of a project; GET /schemas/project.json is its JSON Schema. */
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

/** Options of a wait for a deployment. */
export interface DeploymentWaitOptions extends WaitLimits {
  /** Called at each change of progress. */
  readonly onProgress?: ((deployment: Deployment) => void) | undefined;
}

/** Projects: resources and their dependencies, described in one document. */
export class Projects extends ProjectMethods {
  /** The changes and the cost of a deployment of the descriptor; changes nothing. */
  plan(descriptor: ProjectDescriptor, options?: CallOptions): Promise<ProjectPlan> {
    return this.transport.request("POST", "/projects/plan", { ...options, body: { descriptor } });
  }

  /**
   * Deploys the descriptor. With `planDigest` it is refused when the plan has changed since the digest was computed.
   */
  deploy(
    descriptor: ProjectDescriptor,
    { planDigest, ...options }: CallOptions & { readonly planDigest?: string | undefined } = {},
  ): Promise<DeployedProject> {
    const body = { descriptor, ...(planDigest !== undefined && { plan_digest: planDigest }) };
    return this.transport.request("POST", "/projects/deploy", { ...options, body });
  }

  /** Waits until the deployment is completed. Throws DeploymentFailed, WaitTimedOut, or the signal's reason. */
  async waitForDeployment(
    name: string,
    deploymentId: string,
    { timeoutMs = 1_800_000, signal, onProgress }: DeploymentWaitOptions = {},
  ): Promise<Deployment> {
    let last = "";
    const poll = async (signal: AbortSignal) => {
      const now = await this.deployment(name, deploymentId, { signal });
      if (now.status === "Failed" || now.status === "Aborted") throw new DeploymentFailed(now);
      if (now.status === "Completed") return { found: now };
      const text = JSON.stringify(now.resources);
      if (text !== last) onProgress?.(now);
      last = text;
      return undefined;
    };
    const options = { timeoutMs, signal, toleratesOutage: () => true };
    const found = await pollUntil(poll, "the deployment was not completed", options);
    if (found === undefined) throw new Error("a wait for a deployment returned no deployment");
    return found;
  }

  /** Waits until the project is Deleted. Throws WaitTimedOut, or the signal's reason. */
  async waitUntilDeleted(name: string, { timeoutMs = 1_800_000, signal }: WaitLimits = {}): Promise<void> {
    const poll = async (signal: AbortSignal) => {
      const now = await this.get(name, { signal });
      return now.status === "Deleted" ? { found: now } : undefined;
    };
    await pollUntil(poll, "the project was not Deleted", { timeoutMs, signal, toleratesOutage: () => true });
  }
}
