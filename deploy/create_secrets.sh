#!/bin/sh
# Create the secrets of compose.yaml once, in the volume /secrets, readable by the gateway's user only.
set -eu
umask 077
if [ -e /secrets/gateway.env ]; then exit 0; fi
random() { python3 -c 'import secrets; print(secrets.token_hex(32))'; }
password=$(random)
printf %s "$password" > /secrets/postgres_password
s3_key=$(random)
cat > /secrets/s3.json <<END
{"identities": [{"name": "gateway", "actions": ["Admin", "Read", "Write", "List", "Tagging"],
  "credentials": [{"accessKey": "gateway", "secretKey": "$s3_key"}]}]}
END
cat > /secrets/draft <<END
MEMORY_GATEWAY_SECRET_KEY=$(random)
MEMORY_GATEWAY_PROVISIONING_TOKEN=$(random)
DATABASE_URL=postgres://memory:$password@postgres:5432/memory
AWS_ACCESS_KEY_ID=gateway
AWS_SECRET_ACCESS_KEY=$s3_key
END
chown 10001:10001 /secrets /secrets/draft
mv /secrets/draft /secrets/gateway.env
