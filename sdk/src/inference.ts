import type { InferenceProvider } from "./answers.ts";
import { InferenceMethods } from "./methods.ts";
import { type CallOptions, pathOf } from "./transport.ts";

/** Models of other providers behind one endpoint, which applications call with an inference key. */
export class Inference extends InferenceMethods {
  /** The providers that the organization has configured. */
  async providers(orgId: string, options?: CallOptions): Promise<readonly InferenceProvider[]> {
    const path = pathOf("organizations", orgId, "inference", "providers");
    return (await this.transport.request<{ providers: readonly InferenceProvider[] }>("GET", path, options)).providers;
  }
}
