// Printed from the declarations of events by `npm run generate`. Times are RFC 3339 strings in UTC.

/** The data of each type of event. */
export interface EventData {
  /** Emitted when a service is ready to use. */
  readonly "service.running": {
    /** The service. */
    readonly service_id: string;
    /** Name of the service. */
    readonly service_name: string;
    /** Engine of the service. */
    readonly database_type: string;
    /** Status of the service at the event. */
    readonly status: string;
    /** Error of the service, while it has one. */
    readonly error_message?: string;
  };
  /** Emitted when a service enters an error state. */
  readonly "service.error": {
    /** The service. */
    readonly service_id: string;
    /** Name of the service. */
    readonly service_name: string;
    /** Engine of the service. */
    readonly database_type: string;
    /** Status of the service at the event. */
    readonly status: string;
    /** Error of the service, while it has one. */
    readonly error_message?: string;
  };
  /** Emitted when a service has stopped. */
  readonly "service.stopped": {
    /** The service. */
    readonly service_id: string;
    /** Name of the service. */
    readonly service_name: string;
    /** Engine of the service. */
    readonly database_type: string;
    /** Status of the service at the event. */
    readonly status: string;
    /** Error of the service, while it has one. */
    readonly error_message?: string;
  };
  /** Emitted when a service and its machines are deleted. */
  readonly "service.deleted": {
    /** The service. */
    readonly service_id: string;
    /** Name of the service. */
    readonly service_name: string;
    /** Engine of the service. */
    readonly database_type: string;
    /** Status of the service at the event. */
    readonly status: string;
    /** Error of the service, while it has one. */
    readonly error_message?: string;
  };
  /** Emitted when a service's time to live ends soon. */
  readonly "service.expiring": {
    /** The service. */
    readonly service_id: string;
    /** Name of the service. */
    readonly service_name: string;
    /** Engine of the service. */
    readonly database_type: string;
    /** Status of the service at the event. */
    readonly status: string;
    /** Error of the service, while it has one. */
    readonly error_message?: string;
    /** Time at which the service will be deleted. */
    readonly expires_at: string;
    /** Hours until the deletion. */
    readonly hours_left: number;
  };
  /** Emitted when a service's time to live has ended, and its deletion is blocked. */
  readonly "service.expiry_held": {
    /** The service. */
    readonly service_id: string;
    /** Name of the service. */
    readonly service_name: string;
    /** Engine of the service. */
    readonly database_type: string;
    /** Status of the service at the event. */
    readonly status: string;
    /** Error of the service, while it has one. */
    readonly error_message?: string;
    /** `deletion_protection`. */
    readonly reason: string;
  };
  /** Emitted when a service is restored from a backup and ready to use. */
  readonly "service.restored": {
    /** The service. */
    readonly service_id: string;
    /** Name of the service. */
    readonly service_name: string;
    /** Engine of the service. */
    readonly database_type: string;
    /** Status of the service at the event. */
    readonly status: string;
    /** Error of the service, while it has one. */
    readonly error_message?: string;
    /** `restore`, `fork` or `undelete`. */
    readonly kind: string;
    /** Service that the backup is of. */
    readonly source_service_id: string;
    /** The backup. */
    readonly backup_id: string;
    /** Requested time, if any. */
    readonly restore_point?: string;
  };
  /** Emitted when a failover starts, usually because the primary does not respond. */
  readonly "service.failover_started": {
    /** The service. */
    readonly service_id: string;
    /** Name of the service. */
    readonly service_name: string;
    /** Engine of the service. */
    readonly database_type: string;
    /** Status of the service at the event. */
    readonly status: string;
    /** Error of the service, while it has one. */
    readonly error_message?: string;
    /** Old primary. */
    readonly from_node_id: string;
    /** `node_silent`, `engine_silent` if only the agent responds, or `forced` by an operator of the platform. */
    readonly reason: string;
  };
  /** Emitted when another node is the primary of a service and has taken a write. */
  readonly "service.failed_over": {
    /** The service. */
    readonly service_id: string;
    /** Name of the service. */
    readonly service_name: string;
    /** Engine of the service. */
    readonly database_type: string;
    /** Status of the service at the event. */
    readonly status: string;
    /** Error of the service, while it has one. */
    readonly error_message?: string;
    /** Old primary. */
    readonly from_node_id: string;
    /** New primary. */
    readonly to_node_id: string;
    /** Number of the term, raised with each named primary. */
    readonly term: number;
    /** Seconds from the start of the change to the first write of the new primary. */
    readonly seconds: number;
  };
  /** Emitted when a replica has its data and receives what the primary writes. */
  readonly "node.added": {
    /** The service. */
    readonly service_id: string;
    /** Name of the service. */
    readonly service_name: string;
    /** Engine of the service. */
    readonly database_type: string;
    /** Status of the service at the event. */
    readonly status: string;
    /** Error of the service, while it has one. */
    readonly error_message?: string;
    /** The node. */
    readonly node_id: string;
    /** `replica`. */
    readonly role: string;
    /** Hostname of the node. */
    readonly hostname: string;
    /** Zone of the node. */
    readonly zone: string;
  };
  /** Emitted when a removed replica and its machine are deleted. */
  readonly "node.removed": {
    /** The service. */
    readonly service_id: string;
    /** Name of the service. */
    readonly service_name: string;
    /** Engine of the service. */
    readonly database_type: string;
    /** Status of the service at the event. */
    readonly status: string;
    /** Error of the service, while it has one. */
    readonly error_message?: string;
    /** The node. */
    readonly node_id: string;
    /** `replica`. */
    readonly role: string;
    /** Hostname of the node. */
    readonly hostname: string;
    /** Zone of the node. */
    readonly zone: string;
  };
  /**
   * Emitted when a node of a service with several is in Error, unreachable or unhealthy for 10 s; emitted once, and
   * again only after the node was healthy; planned work on the node explains it for 5 minutes.
   */
  readonly "node.unhealthy": {
    /** The service. */
    readonly service_id: string;
    /** Name of the service. */
    readonly service_name: string;
    /** Engine of the service. */
    readonly database_type: string;
    /** Status of the service at the event. */
    readonly status: string;
    /** Error of the service, while it has one. */
    readonly error_message?: string;
    /** The node. */
    readonly node_id: string;
    /** `replica`. */
    readonly role: string;
    /** Hostname of the node. */
    readonly hostname: string;
    /** Zone of the node. */
    readonly zone: string;
    /** Reason of its first failing check. */
    readonly reason: string;
  };
  /** Emitted when an old primary follows the new one, after it discarded the log that only it had. */
  readonly "node.rewound": {
    /** The service. */
    readonly service_id: string;
    /** Name of the service. */
    readonly service_name: string;
    /** Engine of the service. */
    readonly database_type: string;
    /** Status of the service at the event. */
    readonly status: string;
    /** Error of the service, while it has one. */
    readonly error_message?: string;
    /** The node. */
    readonly node_id: string;
    /** `replica`. */
    readonly role: string;
    /** Hostname of the node. */
    readonly hostname: string;
    /** Zone of the node. */
    readonly zone: string;
    /** Position in its log after which no other node had the log. */
    readonly discarded_from: string;
    /** Bytes of log after that position. */
    readonly discarded_bytes: number;
    /** Number of these bytes, from the first, that its machine retains. */
    readonly kept_bytes: number;
  };
  /**
   * Emitted when replicas are not connected to the primary for 10 s; emitted once, and again only after all were
   * connected; planned work on all of them explains it for 5 minutes.
   */
  readonly "service.replication_degraded": {
    /** The service. */
    readonly service_id: string;
    /** Name of the service. */
    readonly service_name: string;
    /** Engine of the service. */
    readonly database_type: string;
    /** Status of the service at the event. */
    readonly status: string;
    /** Error of the service, while it has one. */
    readonly error_message?: string;
    /** Host names of the replicas that are not connected. */
    readonly missing: readonly string[];
  };
  /**
   * Emitted when PostgreSQL invalidates a logical slot, or a new primary lacks one of the old: its consumer must start
   * again.
   */
  readonly "service.slot_lost": {
    /** The service. */
    readonly service_id: string;
    /** Name of the service. */
    readonly service_name: string;
    /** Engine of the service. */
    readonly database_type: string;
    /** Status of the service at the event. */
    readonly status: string;
    /** Error of the service, while it has one. */
    readonly error_message?: string;
    /** Name of the slot. */
    readonly slot: string;
    /** Database of the slot. */
    readonly database: string;
    /** Output plugin of the slot. */
    readonly plugin: string;
    /** `not_copied`: a new primary lacks it; otherwise the engine's `invalidation_reason`, such as `wal_removed`. */
    readonly reason: string;
    /** Node that has the slot. */
    readonly from_node_id: string;
    /** Primary: the same node, unless the slot was not copied. */
    readonly to_node_id: string;
  };
  /** Emitted when a service's disk is 80, 85 or 90% full. */
  readonly "service.storage_low": {
    /** The service. */
    readonly service_id: string;
    /** Name of the service. */
    readonly service_name: string;
    /** Engine of the service. */
    readonly database_type: string;
    /** Status of the service at the event. */
    readonly status: string;
    /** Error of the service, while it has one. */
    readonly error_message?: string;
    /** 80, 85 or 90: highest threshold reached. */
    readonly used_pct: number;
    /** Storage of the service. */
    readonly storage_size_gb: number;
    /** Node of the disk. */
    readonly node_id: string;
  };
  /** Emitted when a service's disk is 95% full, and writes are blocked until space is free. */
  readonly "service.writes_blocked": {
    /** The service. */
    readonly service_id: string;
    /** Name of the service. */
    readonly service_name: string;
    /** Engine of the service. */
    readonly database_type: string;
    /** Status of the service at the event. */
    readonly status: string;
    /** Error of the service, while it has one. */
    readonly error_message?: string;
    /** 95, or 99: no client is admitted. */
    readonly used_pct: number;
    /** Storage of the service. */
    readonly storage_size_gb: number;
    /** Node of the disk. */
    readonly node_id: string;
  };
  /** Emitted when the quota or the host prevents automatic growth of a service's storage; retried every 10 minutes. */
  readonly "service.autoscale_failed": {
    /** The service. */
    readonly service_id: string;
    /** Name of the service. */
    readonly service_name: string;
    /** Engine of the service. */
    readonly database_type: string;
    /** Status of the service at the event. */
    readonly status: string;
    /** Error of the service, while it has one. */
    readonly error_message?: string;
    /** Storage of the service. */
    readonly storage_size_gb: number;
    /** Size that was attempted. */
    readonly wanted_size_gb: number;
    /** Reason, and advice. */
    readonly reason: string;
  };
  /** Emitted when a service has the requested plan or storage. */
  readonly "service.resized": {
    /** The service. */
    readonly service_id: string;
    /** Name of the service. */
    readonly service_name: string;
    /** Engine of the service. */
    readonly database_type: string;
    /** Status of the service at the event. */
    readonly status: string;
    /** Error of the service, while it has one. */
    readonly error_message?: string;
    /** Operation that resized it. */
    readonly operation_id: string;
    /** New plan. */
    readonly plan_name: string;
    /** New storage. */
    readonly storage_size_gb: number;
    /** Old plan. */
    readonly from_plan_name: string;
    /** Old storage. */
    readonly from_storage_size_gb: number;
  };
  /**
   * Emitted when a service's health has had a new status for 10 s; planned work on a node explains degraded and unknown
   * for 5 minutes. Webhooks receive it only if their `events` list it.
   */
  readonly "service.health_changed": {
    /** The service. */
    readonly service_id: string;
    /** Name of the service. */
    readonly service_name: string;
    /** Engine of the service. */
    readonly database_type: string;
    /** Status of the service at the event. */
    readonly status: string;
    /** Error of the service, while it has one. */
    readonly error_message?: string;
    /** `healthy`, `degraded`, `unhealthy` or `unknown`: the status before. */
    readonly from: string;
    /** The new status. */
    readonly to: string;
    /** Reason; empty if healthy. */
    readonly reason: string;
    /** All checks: `name`, `node_id`, `status`, `reason`. */
    readonly checks: readonly object[];
  };
  /**
   * Emitted when the newest recovery point of a running service is 15 minutes old; emitted once, and again only after
   * it was recent.
   */
  readonly "service.recovery_point_stale": {
    /** The service. */
    readonly service_id: string;
    /** Name of the service. */
    readonly service_name: string;
    /** Engine of the service. */
    readonly database_type: string;
    /** Status of the service at the event. */
    readonly status: string;
    /** Error of the service, while it has one. */
    readonly error_message?: string;
    /** Newest time that can be restored. */
    readonly newest_point: string;
  };
  /** Emitted when the time of an update is set or changed: a day ahead, or immediately for an urgent update. */
  readonly "service.maintenance_scheduled": {
    /** The service. */
    readonly service_id: string;
    /** Name of the service. */
    readonly service_name: string;
    /** Engine of the service. */
    readonly database_type: string;
    /** Status of the service at the event. */
    readonly status: string;
    /** Error of the service, while it has one. */
    readonly error_message?: string;
    /** The update. */
    readonly update_id: string;
    /** `engine_minor`, `image`, `guest_kernel`, `keeper` or `restart`. */
    readonly kind: string;
    /** Description of the update. */
    readonly title: string;
    /** True: it is applied outside the window if its notice ends. */
    readonly urgent: boolean;
    /** Time at which it starts unless it is applied earlier. */
    readonly apply_at: string;
  };
  /** Emitted when the platform starts to apply updates of a service. */
  readonly "service.maintenance_started": {
    /** The service. */
    readonly service_id: string;
    /** Name of the service. */
    readonly service_name: string;
    /** Engine of the service. */
    readonly database_type: string;
    /** Status of the service at the event. */
    readonly status: string;
    /** Error of the service, while it has one. */
    readonly error_message?: string;
    /** The operation that applies them. */
    readonly operation_id: string;
    /** The updates. */
    readonly update_ids: readonly string[];
    /** True: started by the platform, in the window or at the end of a notice. */
    readonly automatic: boolean;
  };
  /** Emitted when updates of a service were applied. */
  readonly "service.maintenance_completed": {
    /** The service. */
    readonly service_id: string;
    /** Name of the service. */
    readonly service_name: string;
    /** Engine of the service. */
    readonly database_type: string;
    /** Status of the service at the event. */
    readonly status: string;
    /** Error of the service, while it has one. */
    readonly error_message?: string;
    /** The operation that applies them. */
    readonly operation_id: string;
    /** The updates. */
    readonly update_ids: readonly string[];
    /** True: started by the platform, in the window or at the end of a notice. */
    readonly automatic: boolean;
  };
  /** Emitted when updates of a service could not be applied. */
  readonly "service.maintenance_failed": {
    /** The service. */
    readonly service_id: string;
    /** Name of the service. */
    readonly service_name: string;
    /** Engine of the service. */
    readonly database_type: string;
    /** Status of the service at the event. */
    readonly status: string;
    /** Error of the operation. */
    readonly error_message: string;
    /** The operation that applies them. */
    readonly operation_id: string;
    /** The updates. */
    readonly update_ids: readonly string[];
    /** True: started by the platform, in the window or at the end of a notice. */
    readonly automatic: boolean;
    /** True: the service runs as before; false: it is in Error. */
    readonly rolled_back: boolean;
    /** True: the data were restored from the snapshot before the update; false: they are unchanged. */
    readonly data_restored: boolean;
  };
  /** Emitted when an automated or manual backup is complete: stored and verified. */
  readonly "backup.completed": {
    /** The service. */
    readonly service_id: string;
    /** The backup. */
    readonly backup_id: string;
    /** `automated` or `manual`. */
    readonly backup_type: string;
    /** Duration of the backup. */
    readonly duration_seconds: number;
    /** Size of the backup in the object store. */
    readonly size_bytes: number;
  };
  /** Emitted when a backup failed or was canceled. */
  readonly "backup.failed": {
    /** The service. */
    readonly service_id: string;
    /** The backup. */
    readonly backup_id: string;
    /** `automated` or `manual`. */
    readonly backup_type: string;
    /** Duration of the backup. */
    readonly duration_seconds: number;
    /** Description of the failure. */
    readonly error_message: string;
  };
  /**
   * Emitted when the log of a service's changes has a gap: log was removed before it was stored, or a restore or drill
   * found stored log lost or damaged; a new base backup follows, unless a later one exists.
   */
  readonly "backup.gap": {
    /** The service. */
    readonly service_id: string;
    /** The last time before the gap. */
    readonly since: string;
    /** The cause, and what to do. */
    readonly message: string;
  };
  /** Emitted when a drill of a service's backups failed: the data could not be restored, or failed a check. */
  readonly "backup.drill_failed": {
    /** The service. */
    readonly service_id: string;
    /** The drill. */
    readonly drill_id: string;
    /** The newest backup at that time. */
    readonly backup_id: string;
    /**
     * `check_failed`, `damaged`, `absent`, `target_not_reached`, `plan_too_small`, `machine_failed`, `timed_out`....
     */
    readonly code: string;
    /** Description of the failure. */
    readonly error_message: string;
  };
  /** Emitted when users can sign in to an app. Webhooks receive it only if their `events` list it. */
  readonly "auth.enabled": {
    /** Id of the app. */
    readonly app_id: string;
    /** Name of the app. */
    readonly app_name: string;
    /** Id of the app's sign-in. */
    readonly auth_id: string;
    /** Id of the service that stores the users. */
    readonly service_id: string;
    /** Status of the sign-in after the event. */
    readonly status: string;
  };
  /** Emitted when the sign-in of an app was switched off. Webhooks receive it only if their `events` list it. */
  readonly "auth.disabled": {
    /** Id of the app. */
    readonly app_id: string;
    /** Name of the app. */
    readonly app_name: string;
    /** Id of the app's sign-in. */
    readonly auth_id: string;
    /** Id of the service that stores the users. */
    readonly service_id: string;
    /** Status of the sign-in after the event. */
    readonly status: string;
  };
  /**
   * Emitted when the sign-in of an app could not be provisioned. Webhooks receive it only if their `events` list it.
   */
  readonly "auth.failed": {
    /** Id of the app. */
    readonly app_id: string;
    /** Name of the app. */
    readonly app_name: string;
    /** Id of the app's sign-in. */
    readonly auth_id: string;
    /** Id of the service that stores the users. */
    readonly service_id: string;
    /** Status of the sign-in after the event. */
    readonly status: string;
    /** The step that failed, and its remedy. */
    readonly failure_reason: string;
  };
  /** Emitted when another key signs the tokens of an app. Webhooks receive it only if their `events` list it. */
  readonly "auth.key_rotated": {
    /** Id of the app. */
    readonly app_id: string;
    /** Name of the app. */
    readonly app_name: string;
    /** Id of the app's sign-in. */
    readonly auth_id: string;
    /** Id of the service that stores the users. */
    readonly service_id: string;
    /** Status of the sign-in after the event. */
    readonly status: string;
    /** The previous keys are invalid. */
    readonly emergency: boolean;
  };
  /**
   * Emitted when the mail server of an app does not accept mails any more. Webhooks receive it only if their `events`
   * list it.
   */
  readonly "auth.mail_failing": {
    /** Id of the app. */
    readonly app_id: string;
    /** Name of the app. */
    readonly app_name: string;
    /** Id of the app's sign-in. */
    readonly auth_id: string;
    /** Id of the service that stores the users. */
    readonly service_id: string;
    /** Status of the sign-in after the event. */
    readonly status: string;
    /** Error of the mail server, without addresses. */
    readonly reason: string;
  };
  /** Emitted when an end user of an app was erased. */
  readonly "auth.user.deleted": {
    /** Id of the user, if the request named the user by id. */
    readonly user_id?: string;
    /** Keyed digest of the address, if the request named the user by address. */
    readonly email_digest?: string;
  };
  /** Emitted when a deployment serves on all machines of an app. */
  readonly "app.deployed": {
    /** Id of the app. */
    readonly app_id: string;
    /** Name of the app. */
    readonly app_name: string;
    /** Status of the app after the event. */
    readonly status: string;
    /** Id of the deployment. */
    readonly deployment_id: string;
    /** The image as it was requested. */
    readonly image_ref: string;
  };
  /** Emitted when a deployment failed; the one before serves on. */
  readonly "app.deploy_failed": {
    /** Id of the app. */
    readonly app_id: string;
    /** Name of the app. */
    readonly app_name: string;
    /** Status of the app after the event. */
    readonly status: string;
    /** Id of the deployment. */
    readonly deployment_id: string;
    /** The image as it was requested. */
    readonly image_ref: string;
    /** The reason. */
    readonly reason: string;
  };
  /**
   * Emitted when an app enters the status Error: its first deployment failed, or no machine has been healthy for a
   * minute.
   */
  readonly "app.failed": {
    /** Id of the app. */
    readonly app_id: string;
    /** Name of the app. */
    readonly app_name: string;
    /** Status of the app after the event. */
    readonly status: string;
    /** The reason. */
    readonly reason: string;
  };
  /** Emitted when an app's health has a new status. */
  readonly "app.health_changed": {
    /** Id of the app. */
    readonly app_id: string;
    /** Name of the app. */
    readonly app_name: string;
    /** Status of the app after the event. */
    readonly status: string;
    /** `healthy`, `degraded`, `unhealthy` or `unknown`: the status before. */
    readonly from: string;
    /** The new status. */
    readonly to: string;
    /** The reason. */
    readonly reason: string;
  };
  /** Emitted when an app was stopped by a request. */
  readonly "app.stopped": {
    /** Id of the app. */
    readonly app_id: string;
    /** Name of the app. */
    readonly app_name: string;
    /** Status of the app after the event. */
    readonly status: string;
  };
  /** Emitted when a test delivery was requested; only that endpoint gets it. */
  readonly "webhook.test": {
    /** Id of the endpoint. */
    readonly webhook_id: string;
    /** A sentence for users. */
    readonly message: string;
  };
  /** Emitted when a link was requested with which the holder of a channel's e-mail address agrees to get alerts. */
  readonly "channel.confirmation_requested": {
    /** Id of the channel. */
    readonly channel_id: string;
  };
  /** Emitted when a test of an alert channel was requested; only that channel gets it. */
  readonly "channel.test": {
    /** Id of the channel. */
    readonly channel_id: string;
    /** A sentence for users. */
    readonly message: string;
  };
  /** Emitted when the platform disabled an endpoint because it responded with 410 or had failed for 5 days. */
  readonly "webhook.disabled": {
    /** Id of the endpoint. */
    readonly webhook_id: string;
    /** URL of the endpoint. */
    readonly url: string;
    /** `gone` for a response of 410, or `failing`. */
    readonly reason: string;
    /** Time of the first failed attempt after the last successful one. */
    readonly failing_since: string;
  };
  /**
   * Emitted when the condition of an alert rule has held for its duration, or data are missing and the rule has
   * `no_data: fire`.
   */
  readonly "alert.fired": {
    /** Id of the alert, the same when it is resolved. */
    readonly id: string;
    /** The rule. */
    readonly rule_id: string;
    /** The rule's name. */
    readonly alert_name: string;
    /** The service. */
    readonly service_id: string;
    /** Name of the service at the event. */
    readonly service_name: string;
    /** The node whose value decides. */
    readonly node_id: string | null;
    /** The metric that the rule evaluates. */
    readonly metric: string;
    /** `gt` (above) or `lt` (below). */
    readonly condition: string;
    /** The rule's threshold. */
    readonly threshold: number;
    /** The value that caused the change; null without data. */
    readonly current_value: number | null;
    /** `info`, `warning` or `critical`. */
    readonly severity: string;
    /** `firing`, `no_data` or `resolved`. */
    readonly state: string;
    /** Start of the time for which the condition held, or data were missing. */
    readonly since: string;
    /** Time at which the alert fired. */
    readonly fired_at: string;
    /** The channel that gets the alert. */
    readonly notification_channel_id: string | null;
    /** Null, so that both messages of a channel have the same members. */
    readonly resolved_at: string | null;
  };
  /** Emitted when an alert that fired is resolved. */
  readonly "alert.resolved": {
    /** Id of the alert, the same when it is resolved. */
    readonly id: string;
    /** The rule. */
    readonly rule_id: string;
    /** The rule's name. */
    readonly alert_name: string;
    /** The service. */
    readonly service_id: string;
    /** Name of the service at the event. */
    readonly service_name: string;
    /** The node whose value decides. */
    readonly node_id: string | null;
    /** The metric that the rule evaluates. */
    readonly metric: string;
    /** `gt` (above) or `lt` (below). */
    readonly condition: string;
    /** The rule's threshold. */
    readonly threshold: number;
    /** The value that caused the change; null without data. */
    readonly current_value: number | null;
    /** `info`, `warning` or `critical`. */
    readonly severity: string;
    /** `firing`, `no_data` or `resolved`. */
    readonly state: string;
    /** Start of the time for which the condition held, or data were missing. */
    readonly since: string;
    /** Time at which the alert fired. */
    readonly fired_at: string;
    /** The channel that gets the alert. */
    readonly notification_channel_id: string | null;
    /** Time at which the alert was resolved. */
    readonly resolved_at: string;
    /** `condition_false`, `rule_changed`, `rule_paused`, `rule_deleted`, `service_stopped` or `service_deleted`. */
    readonly reason: string;
  };
  /** Emitted when a queue accepts messages for the first time. Webhooks receive it only if their `events` list it. */
  readonly "queue.active": {
    /** Id of the service. */
    readonly service_id: string;
    /** Id of the queue. */
    readonly queue_id: string;
    /** Name of the queue. */
    readonly queue_name: string;
    /** Database of the queue. */
    readonly database_name: string;
    /** Status of the queue after the event. */
    readonly status: string;
  };
  /**
   * Emitted when a queue could not be created, changed or deleted. Webhooks receive it only if their `events` list it.
   */
  readonly "queue.failed": {
    /** Id of the service. */
    readonly service_id: string;
    /** Id of the queue. */
    readonly queue_id: string;
    /** Name of the queue. */
    readonly queue_name: string;
    /** Database of the queue. */
    readonly database_name: string;
    /** Status of the queue after the event. */
    readonly status: string;
    /** Reason of the failure. */
    readonly error_message: string;
  };
  /** Emitted when a queue and its messages were deleted. Webhooks receive it only if their `events` list it. */
  readonly "queue.deleted": {
    /** Id of the service. */
    readonly service_id: string;
    /** Id of the queue. */
    readonly queue_id: string;
    /** Name of the queue. */
    readonly queue_name: string;
    /** Database of the queue. */
    readonly database_name: string;
    /** Status of the queue after the event. */
    readonly status: string;
  };
  /** Emitted when an export failed ten times in a row. Webhooks receive it only if their `events` list it. */
  readonly "export.failing": {
    /** Id of the integration. */
    readonly integration_id: string;
    /** Name of the integration. */
    readonly integration_name: string;
    /** Type of the destination. */
    readonly destination_type: string;
    /** Exported service; null for all services of the organization. */
    readonly service_id: string | null;
    /** Number of failed runs since the last successful one. */
    readonly consecutive_failures: number;
    /** Error of the last run: a status and a short message. */
    readonly last_export_error: string;
  };
  /** Emitted when an export that was failing works again. Webhooks receive it only if their `events` list it. */
  readonly "export.recovered": {
    /** Id of the integration. */
    readonly integration_id: string;
    /** Name of the integration. */
    readonly integration_name: string;
    /** Type of the destination. */
    readonly destination_type: string;
    /** Exported service; null for all services of the organization. */
    readonly service_id: string | null;
  };
  /**
   * Emitted when an export failed for seven days and was disabled. Webhooks receive it only if their `events` list it.
   */
  readonly "export.disabled": {
    /** Id of the integration. */
    readonly integration_id: string;
    /** Name of the integration. */
    readonly integration_name: string;
    /** Type of the destination. */
    readonly destination_type: string;
    /** Exported service; null for all services of the organization. */
    readonly service_id: string | null;
    /** Number of failed runs since the last successful one. */
    readonly consecutive_failures: number;
    /** Error of the last run: a status and a short message. */
    readonly last_export_error: string;
  };
  /** Emitted when the month has cost alert_pct of its limit, once a month. */
  readonly "inference.budget_warning": {
    /** The month in UTC, such as 2026-11. */
    readonly period: string;
    /** Cost of the month so far. */
    readonly spent_cents: number;
    /** The limit of the month. */
    readonly monthly_cost_limit_cents: number;
  };
  /** Emitted when the month's limit is used up; further calls are refused. */
  readonly "inference.circuit_opened": {
    /** The month in UTC, such as 2026-11. */
    readonly period: string;
    /** Cost of the month so far. */
    readonly spent_cents: number;
    /** The limit of the month. */
    readonly monthly_cost_limit_cents: number;
  };
  /**
   * Emitted when a provider reported more tokens than a call had reserved, at most once a day; it is charged as
   * reported.
   */
  readonly "inference.usage_above_reservation": {
    /** The month in UTC, such as 2026-11. */
    readonly period: string;
    /** Cost of the month so far. */
    readonly spent_cents: number;
    /** The limit of the month. */
    readonly monthly_cost_limit_cents: number;
    /** The model, as provider/name. */
    readonly model: string;
  };
  /** Emitted when a reset closed the circuit, while the cost was below the limit. */
  readonly "inference.circuit_closed": {
    /** The month in UTC, such as 2026-11. */
    readonly period: string;
    /** Cost of the month so far. */
    readonly spent_cents: number;
    /** The limit of the month. */
    readonly monthly_cost_limit_cents: number;
  };
  /** Emitted when a deployment brought a project to Running. Webhooks receive it only if their `events` list it. */
  readonly "project.deployed": {
    /** Id of the project. */
    readonly project_id: string;
    /** Name of the bundle. */
    readonly name: string;
    /** Reason of a failure. */
    readonly detail?: string;
  };
  /**
   * Emitted when a deployment of a project failed or was aborted. Webhooks receive it only if their `events` list it.
   */
  readonly "project.failed": {
    /** Id of the project. */
    readonly project_id: string;
    /** Name of the bundle. */
    readonly name: string;
    /** Reason of a failure. */
    readonly detail?: string;
  };
  /** Emitted when a project and its resources are deleted. Webhooks receive it only if their `events` list it. */
  readonly "project.deleted": {
    /** Id of the project. */
    readonly project_id: string;
    /** Name of the bundle. */
    readonly name: string;
    /** Reason of a failure. */
    readonly detail?: string;
  };
  /** Emitted when a stack runs for the first time. Webhooks receive it only if their `events` list it. */
  readonly "stack.running": {
    /** Id of the stack. */
    readonly stack_id: string;
    /** Name of the bundle. */
    readonly name: string;
    /** Reason of a failure. */
    readonly detail?: string;
  };
  /**
   * Emitted when a stack could not be launched and was rolled back. Webhooks receive it only if their `events` list it.
   */
  readonly "stack.failed": {
    /** Id of the stack. */
    readonly stack_id: string;
    /** Name of the bundle. */
    readonly name: string;
    /** Reason of a failure. */
    readonly detail?: string;
  };
  /**
   * Emitted when a stack has the newest version of its template. Webhooks receive it only if their `events` list it.
   */
  readonly "stack.upgraded": {
    /** Id of the stack. */
    readonly stack_id: string;
    /** Name of the bundle. */
    readonly name: string;
    /** Reason of a failure. */
    readonly detail?: string;
  };
  /**
   * Emitted when all services of a pipeline are healthy, the first time or again. Webhooks receive it only if their
   * `events` list it.
   */
  readonly "pipeline.running": {
    /** Id of the pipeline. */
    readonly pipeline_id: string;
    /** Name of the bundle. */
    readonly name: string;
    /** Reason of a failure. */
    readonly detail?: string;
  };
  /** Emitted when a service of a pipeline is not healthy. Webhooks receive it only if their `events` list it. */
  readonly "pipeline.degraded": {
    /** Id of the pipeline. */
    readonly pipeline_id: string;
    /** Name of the bundle. */
    readonly name: string;
    /** Reason of a failure. */
    readonly detail?: string;
  };
}
