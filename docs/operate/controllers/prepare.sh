#!/bin/sh
# Writes the files of each controller's host into DIRECTORY/<address>, and those of the history's server into
# DIRECTORY/history. Secrets are created once; a repeated call keeps them.
set -eu
umask 077
if [ $# -lt 6 ]; then
  echo "usage: prepare.sh DIRECTORY DOMAIN HISTORY_ADDRESS OBJECTS_URL OBJECTS_KEY_FILE ADDRESS..." >&2
  exit 2
fi
out=$1 domain=$2 history=$3 objects=$4 objects_key=$5
shift 5
mkdir -p "$out/shared"

random() { openssl rand -base64 "$1" | tr -d '\n=' | tr '+/' '-_'; }
once() { [ -s "$out/shared/$1" ] || { "$2" >"$out/shared/$1.new"; mv "$out/shared/$1.new" "$out/shared/$1"; }; }

installation_id() { cat /proc/sys/kernel/random/uuid; }
history_password() { random 24; }
master_key() { printf '{"current":"v1","keys":{"v1":"%s"}}\n' "$(openssl rand -base64 32)"; }
bootstrap() {
  printf '{"username":"admin","password":"%s","api_key_id":"hfk_%s","api_key_secret":"%s",' \
    "$(random 24)" "$(random 9)" "$(random 32)"
  printf '"token":"hft_%s","organization":"default"}\n' "$(random 32)"
}
once installation-id installation_id
once history-password history_password
once master-key.json master_key
once bootstrap.json bootstrap

# The authority of the connections to etcd and to the history.
[ -s "$out/shared/ca.crt" ] || openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 7300 \
  -subj "/CN=Holdfast transport" -addext "keyUsage=critical,keyCertSign,cRLSign" \
  -keyout "$out/shared/ca.key" -out "$out/shared/ca.crt" 2>/dev/null

# certificate DIRECTORY ADDRESS: a new key, valid for a year as server and as client.
certificate() {
  mkdir -p "$1"
  openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$2" \
    -keyout "$1/tls.key" -out "$1/tls.csr" 2>/dev/null
  printf 'subjectAltName=IP:%s,IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n' "$2" >"$1/tls.ext"
  openssl x509 -req -in "$1/tls.csr" -CA "$out/shared/ca.crt" -CAkey "$out/shared/ca.key" -CAcreateserial -days 365 \
    -extfile "$1/tls.ext" -out "$1/tls.crt" 2>/dev/null
  cp "$out/shared/ca.crt" "$1/ca.crt"
  rm "$1/tls.csr" "$1/tls.ext"
}

# list FORMAT ADDRESS...: each address in the format, separated by commas.
list() {
  format=$1 result=
  shift
  for each; do result="$result${result:+,}$(printf "$format" "$each")"; done
  echo "$result"
}
members=
number=0
for address; do
  number=$((number + 1))
  members="$members${members:+,}controller-$number=https://$address:2380"
done

certificate "$out/history" "$history"
number=0
for address; do
  number=$((number + 1))
  host="$out/$address"
  mkdir -p "$host/keys"
  certificate "$host/etcd" "$address"
  certificate "$host/pki" "$address"
  for name in master-key.json bootstrap.json history-password; do cp "$out/shared/$name" "$host/keys/$name"; done
  cp "$objects_key" "$host/keys/objects-key.json"
  cat >"$host/etcd.env" <<END
ETCD_NAME=controller-$number
ETCD_DATA_DIR=/var/lib/etcd/holdfast
ETCD_LISTEN_CLIENT_URLS=https://$address:2379
ETCD_ADVERTISE_CLIENT_URLS=https://$address:2379
ETCD_LISTEN_PEER_URLS=https://$address:2380
ETCD_INITIAL_ADVERTISE_PEER_URLS=https://$address:2380
ETCD_INITIAL_CLUSTER=$members
ETCD_INITIAL_CLUSTER_TOKEN=$(cat "$out/shared/installation-id")
ETCD_CERT_FILE=/etc/holdfast/etcd/tls.crt
ETCD_KEY_FILE=/etc/holdfast/etcd/tls.key
ETCD_TRUSTED_CA_FILE=/etc/holdfast/etcd/ca.crt
ETCD_CLIENT_CERT_AUTH=true
ETCD_PEER_CERT_FILE=/etc/holdfast/etcd/tls.crt
ETCD_PEER_KEY_FILE=/etc/holdfast/etcd/tls.key
ETCD_PEER_TRUSTED_CA_FILE=/etc/holdfast/etcd/ca.crt
ETCD_PEER_CLIENT_CERT_AUTH=true
ETCD_AUTO_COMPACTION_MODE=periodic
ETCD_AUTO_COMPACTION_RETENTION=1h
ETCD_QUOTA_BACKEND_BYTES=2147483648
END
  cat >"$host/controller.env" <<END
HOLDFAST_INSTALLATION_ID=$(cat "$out/shared/installation-id")
HOLDFAST_CONTROLLER_ID=controller-$number
HOLDFAST_ETCD=$(list https://%s:2379 "$@")
HOLDFAST_ETCD_CA=/etc/holdfast/pki/ca.crt
HOLDFAST_ETCD_CERT=/etc/holdfast/pki/tls.crt
HOLDFAST_ETCD_KEY=/etc/holdfast/pki/tls.key
HOLDFAST_HISTORY_URL=postgres://holdfast@$history:5432/holdfast
HOLDFAST_HISTORY_PASSWORD_FILE=/etc/holdfast/keys/history-password
HOLDFAST_HISTORY_CA=/etc/holdfast/pki/ca.crt
HOLDFAST_MASTER_KEY_FILE=/etc/holdfast/keys/master-key.json
HOLDFAST_BOOTSTRAP_FILE=/etc/holdfast/keys/bootstrap.json
HOLDFAST_OBJECTS=$objects
HOLDFAST_OBJECTS_KEY_FILE=/etc/holdfast/keys/objects-key.json
HOLDFAST_API_LISTEN=$address:8443
HOLDFAST_BASE_URL=https://$address:8443
HOLDFAST_AGENT_LISTEN=$address:8444
HOLDFAST_AGENT_ADVERTISE=$address:8444
HOLDFAST_PROVIDER=none
HOLDFAST_DOMAIN=$domain
HOLDFAST_DNS_SERVERS=$(list %s:53 "$@")
HOLDFAST_DNS_IDENTITY_DIR=/var/lib/holdfast/dns/identity
HOLDFAST_CA_FILE=/var/lib/holdfast/ca.pem
HOLDFAST_IMAGES_DIR=/var/cache/holdfast/images
HOLDFAST_CACHE=/var/cache/holdfast
END
  cat >"$host/dns.env" <<END
HOLDFAST_INSTALLATION_ID=$(cat "$out/shared/installation-id")
HOLDFAST_CONTROLLERS=$(list %s:8444 "$@")
HOLDFAST_DNS_LISTEN=$address:53
HOLDFAST_DNS_ADDRESSES=$(list %s "$@")
HOLDFAST_DNS_DIR=/var/lib/holdfast/dns
HOLDFAST_DNS_IDENTITY_DIR=/var/lib/holdfast/dns/identity
END
done
