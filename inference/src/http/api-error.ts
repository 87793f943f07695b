/** An error in the format of OpenAI's API. */
export interface ApiError {
  readonly status: number;
  readonly code: string;
  readonly type: string;
  readonly message: string;
  /** The invalid member of the body. */
  readonly param?: string;
  /** The provider's type and code, which replace the proxy's in the response. */
  readonly provider?: { readonly type?: string; readonly code?: string };
  /** The provider's type and code beside the proxy's, as the member `provider` of the response. */
  readonly cause?: { readonly type?: string; readonly code?: string };
  readonly headers?: Readonly<Record<string, string>>;
}

/** Error codes with their status and type. */
// biome-ignore format: a table, aligned so that it reads as one
const codes = {
  not_found:                { status: 404, type: "invalid_request_error" },
  method_not_allowed:       { status: 405, type: "invalid_request_error" },
  invalid_key:              { status: 401, type: "authentication_error" },
  rate_limited:             { status: 429, type: "rate_limit_error" },
  request_too_large:        { status: 413, type: "invalid_request_error" },
  unsupported_encoding:     { status: 415, type: "invalid_request_error" },
  invalid_model:            { status: 400, type: "invalid_request_error" },
  provider_not_configured:  { status: 412, type: "invalid_request_error" },
  eu_residency_unavailable: { status: 403, type: "permission_error" },
  token_ceiling_exceeded:   { status: 429, type: "rate_limit_error" },
  cost_circuit_open:        { status: 402, type: "billing_error" },
  upstream_error:           { status: 502, type: "api_error" },
  provider_auth_failed:     { status: 502, type: "api_error" },
  upstream_timeout:         { status: 504, type: "api_error" },
  accounting_unavailable:   { status: 503, type: "api_error" },
  internal_error:           { status: 500, type: "api_error" },
} as const;

export type ErrorCode = keyof typeof codes;

export function apiError(
  code: ErrorCode,
  message: string,
  details: Pick<ApiError, "param" | "headers" | "provider" | "cause"> & { readonly status?: number } = {},
): ApiError {
  const { param, headers, provider, cause, status } = details;
  return {
    ...codes[code],
    ...(status !== undefined && { status }),
    code,
    message,
    ...(param !== undefined && { param }),
    ...(headers && { headers }),
    ...(provider && { provider }),
    ...(cause && { cause }),
  };
}

/** Body of an error response, and of an error event in a stream. */
export function errorBody({ message, type, param, code, provider, cause }: ApiError): string {
  return JSON.stringify({ error: { message, type, param: param ?? null, code, ...provider, provider: cause } });
}
