# needs: strings
greet() { upper "$1"; }
