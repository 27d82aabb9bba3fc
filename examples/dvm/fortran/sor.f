! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
C     Successive over-relaxation: the ranks follow each other as a pipeline, in fixed form. Argument: size.
      PROGRAM SOR
      INTEGER N, IT, I, J
      REAL EPS, W, S
      REAL, ALLOCATABLE :: A(:,:)
      CHARACTER*32 WORD
*DVM$ DISTRIBUTE A(BLOCK, BLOCK)
      CALL GET_COMMAND_ARGUMENT(1, WORD)
      READ (WORD, *) N
      ALLOCATE (A(N, N))
      W = 0.5
*DVM$ PARALLEL (J, I) ON A(I, J)
      DO J = 1, N
      DO I = 1, N
         A(I, J) = -1.
         IF (I .EQ. J) A(I, J) = N + 2
      END DO
      END DO
      DO IT = 1, 20
      EPS = 0.
*DVM$ PARALLEL (J, I) ON A(I, J), PRIVATE(S), REDUCTION(MAX(EPS)),
*DVM$> ACROSS(A(1:1, 1:1))
      DO J = 2, N-1
      DO I = 2, N-1
         S = A(I, J)
         A(I, J) = (W / 4) * (A(I-1, J) + A(I+1, J) + A(I, J-1) +
     *             A(I, J+1)) + (1 - W) * A(I, J)
         EPS = MAX(EPS, ABS(S - A(I, J)))
      END DO
      END DO
      PRINT 200, IT, EPS
200   FORMAT(' IT = ', I4, '   EPS = ', E14.7)
      END DO
      PRINT *, A(1, 1), A(N, N), A(N/2, 3)
      END
