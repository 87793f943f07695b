import { type SchemaRule, formatRule } from "@holdfast/gateway/openapi/schema-rules.ts";
import {
  CreateAuthClientRequestSchema,
  CreateAuthUserRequestSchema,
  EnableAuthRequestSchema,
  EraseAuthUserRequestSchema,
  NewAuthSmtpSchema,
  NewAuthThemeSchema,
  PutAuthIdpProviderRequestSchema,
  TestAuthSmtpRequestSchema,
  UpdateAuthClientRequestSchema,
} from "@holdfast/proto/holdfast/v1/app_auth_pb.ts";
import {
  CreateAppDomainRequestSchema,
  CreateAppRequestSchema,
  UpdateAppRequestSchema,
} from "@holdfast/proto/holdfast/v1/app_pb.ts";
import { hostedFieldRule } from "./hosting/hosting-request.ts";
import { imageReferenceForm } from "./hosting/image-reference.ts";
import { homeUrlForm, httpsUrlForm, originForm, redirectUriForm } from "./app/checked-url.ts";
import { hostNameForm, oneLineForm, pemForm, portForm, visibleForm } from "./auth/checked-auth.ts";
import { idpForm, issuerUrlForm } from "./auth/idp.ts";

const addressForm = formatRule("email");
/** A domain of a user has a dot. */
const domainNameForm = { ...formatRule("hostname"), pattern: "\\." };

/** Input limits of the app RPCs: redirect URLs, mail servers and addresses, domains. */
export const appSchemaRules: readonly SchemaRule[] = [
  [CreateAppRequestSchema.field.homeUrl, homeUrlForm],
  [UpdateAppRequestSchema.field.homeUrl, homeUrlForm],
  [CreateAppRequestSchema, hostedFieldRule],
  [CreateAppRequestSchema.field.imageRef, imageReferenceForm],
  [UpdateAppRequestSchema.field.imageRef, imageReferenceForm],
  [CreateAppDomainRequestSchema.field.name, domainNameForm],
  [EnableAuthRequestSchema, { required: ["smtp"] }],
  [EnableAuthRequestSchema.field.redirectUris, redirectUriForm],
  [EnableAuthRequestSchema.field.customDomain, domainNameForm],
  [NewAuthThemeSchema.field.logoUrl, httpsUrlForm],
  [NewAuthSmtpSchema, { dependentRequired: { password: ["username"] } }],
  [NewAuthSmtpSchema.field.host, hostNameForm],
  [NewAuthSmtpSchema.field.port, portForm],
  [NewAuthSmtpSchema.field.username, visibleForm],
  [NewAuthSmtpSchema.field.password, oneLineForm],
  [NewAuthSmtpSchema.field.fromAddress, addressForm],
  [NewAuthSmtpSchema.field.caCertificate, pemForm],
  [TestAuthSmtpRequestSchema.field.to, addressForm],
  [CreateAuthUserRequestSchema.field.email, addressForm],
  [EraseAuthUserRequestSchema.field.email, addressForm],
  [CreateAuthClientRequestSchema.field.redirectUris, redirectUriForm],
  [CreateAuthClientRequestSchema.field.postLogoutRedirectUris, redirectUriForm],
  [CreateAuthClientRequestSchema.field.allowedOrigins, originForm],
  [UpdateAuthClientRequestSchema.field.redirectUris, redirectUriForm],
  [UpdateAuthClientRequestSchema.field.postLogoutRedirectUris, redirectUriForm],
  [UpdateAuthClientRequestSchema.field.allowedOrigins, originForm],
  [PutAuthIdpProviderRequestSchema.field.provider, idpForm],
  [PutAuthIdpProviderRequestSchema.field.issuerUrl, issuerUrlForm],
  [PutAuthIdpProviderRequestSchema.field.caCertificate, pemForm],
];
