import { text, type ValuesOf } from "@holdfast/common/config.ts";
import type { VendorUrls } from "./destinations/destination.ts";

export const exportSettings = {
  apmUrl: text(
    "HOLDFAST_EXPORT_APM_URL",
    "Base URL in place of the vendor's own for exports of type apm_platform, such as that of a proxy",
    "",
  ),
  logSaasUrl: text("HOLDFAST_EXPORT_LOG_SAAS_URL", "URL for exports of type log_saas that name no endpoint", ""),
  cloudUrl: text(
    "HOLDFAST_EXPORT_CLOUD_URL",
    "Base URL in place of the vendor's own for exports of type cloud_monitoring",
    "",
  ),
} as const;

export function vendorUrlsOf({ apmUrl, logSaasUrl, cloudUrl }: ValuesOf<typeof exportSettings>): VendorUrls {
  const base = (url: string) => url.replace(/\/+$/, "");
  return { apm: base(apmUrl), logSaas: base(logSaasUrl), cloud: base(cloudUrl) };
}
