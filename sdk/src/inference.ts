import type { InferenceProvider } from "./responses.ts";
import { InferenceMethods } from "./methods.ts";
import { type CallOptions, pathOf } from "./transport.ts";

/** Language models of several providers behind one endpoint, which applications call with an inference key. */
export class Inference extends InferenceMethods {
  /** Configured providers of the organization. */
  async providers(orgId: string, options?: CallOptions): Promise<readonly InferenceProvider[]> {
    const path = pathOf("organizations", orgId, "inference", "providers");
    return (await this.transport.request<{ providers: readonly InferenceProvider[] }>("GET", path, options)).providers;
  }
}
