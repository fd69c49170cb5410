echo "nobody needs this"
