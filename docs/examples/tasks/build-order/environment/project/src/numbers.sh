# needs: zero
# needs: strings
double() { echo $((2 * $1 + ZERO)); }
