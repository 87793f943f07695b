/** Answers of the API as tests read them; their full shape is checked on every answer. */
export interface ServiceJson {
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly database_type: string;
  readonly version: string;
  readonly plan_name: string;
  readonly storage_size_gb: number;
  readonly storage_tier: string;
  readonly zone: string;
  readonly allowed_cidrs: readonly string[];
  readonly hostname: string;
  readonly private_hostname: string;
  readonly port: number;
  readonly nodes: readonly {
    readonly id: string;
    readonly role: string;
    readonly status: string;
    readonly hostname: string;
  }[];
  readonly operation: OperationJson | null;
  readonly health: {
    readonly status: string;
    readonly reason: string | null;
    readonly checks: readonly { readonly name: string; readonly status: string; readonly reason: string | null }[];
  };
  readonly tags: Readonly<Record<string, string>>;
  readonly deletion_protection: boolean;
  readonly ttl_hours: number | null;
  readonly expires_at: string | null;
  readonly created_at: string;
  readonly updated_at: string;
  readonly error: { readonly code: string; readonly message: string } | null;
}

export interface OperationJson {
  readonly id: string;
  readonly service_id: string;
  readonly type: string;
  readonly status: string;
  readonly step: string | null;
  readonly progress_pct: number;
  readonly created_at: string;
  readonly started_at: string | null;
  readonly deadline: string | null;
  readonly finished_at: string | null;
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly snapshot: { readonly state: string; readonly reason: string | null } | null;
}

export interface ConnectionJson {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly database: string;
  readonly uri: string;
  readonly private_host: string;
  readonly private_uri: string;
  readonly ca_certificate: string;
  readonly listeners: readonly { readonly name: string; readonly port: number; readonly tls: string }[];
  readonly nodes: readonly {
    readonly id: string;
    readonly role: string;
    readonly hostname: string;
    readonly addresses: readonly string[];
    readonly private_hostname: string;
    readonly private_addresses: readonly string[];
  }[];
}

export interface ProblemJson {
  readonly code: string;
  readonly detail: string;
  readonly status: number;
  readonly errors: readonly { readonly field: string; readonly pointer: string | null; readonly code: string }[];
}

export interface LogsJson {
  readonly lines: readonly {
    readonly time: string;
    readonly level: string;
    readonly component: string;
    readonly message: string;
  }[];
  readonly next_cursor: string;
  readonly has_more: boolean;
}

export type PageJson<Plural extends string, Item> = Readonly<Record<Plural, readonly Item[]>> & {
  readonly next_cursor: string | null;
};
